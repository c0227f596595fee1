with

subjects as (

    select * from {{ ref('stg_control__subjects') }}

),

-- All values are in one currency, so pairs in other currencies are left out.
pairs as (

    select * from {{ ref('stg_prices__pairs') }}
    where priced_in = {{ value_currency() }}

),

networks as (

    select * from {{ ref('stg_chain__networks') }}

),

common_tokens as (

    select
        network,
        token_address,
        symbol
    from {{ ref('stg_chain__common_tokens') }}

    union all

    select
        network,
        'native' as token_address,
        native_symbol as symbol
    from networks

),

labels as (

    select * from {{ ref('int_tokens_labelled') }}

),

linked_tokens as (

    select
        subjects.tenant_id,
        subjects.subject_key,
        subjects.ledger_id,
        subjects.network,
        subjects.address as token_address,
        pairs.pair_key
    from subjects
    inner join pairs
        on
            subjects.pair_key = pairs.pair_key
            and subjects.tenant_id = pairs.tenant_id
    where subjects.kind = 'token'

),

wallets as (

    select * from subjects
    where kind = 'wallet'

),

-- If several tokens have one contract, the one on the wallet's own ledger counts, else the first one added.
linked_positions as (

    select
        wallets.tenant_id,
        wallets.subject_key,
        wallets.network,
        linked_tokens.token_address,
        arg_min(
            linked_tokens.pair_key, (linked_tokens.ledger_id != wallets.ledger_id, linked_tokens.subject_key)
        ) as pair_key
    from wallets
    inner join linked_tokens
        on
            wallets.tenant_id = linked_tokens.tenant_id
            and wallets.network = linked_tokens.network
    group by wallets.tenant_id, wallets.subject_key, wallets.network, linked_tokens.token_address

),

pairs_by_symbol as (

    select
        tenant_id,
        priced_as,
        arg_min(
            pair_key, list_position(['Market', 'Trade', 'NAV', 'Bid', 'Ask'], price_type)
        ) as pair_key
    from pairs
    group by tenant_id, priced_as

),

common_positions as (

    select
        wallets.tenant_id,
        wallets.subject_key,
        wallets.network,
        common_tokens.token_address,
        pairs_by_symbol.pair_key
    from wallets
    inner join common_tokens on wallets.network = common_tokens.network
    inner join pairs_by_symbol
        on
            wallets.tenant_id = pairs_by_symbol.tenant_id
            and common_tokens.symbol = pairs_by_symbol.priced_as
    anti join linked_positions
        on
            wallets.subject_key = linked_positions.subject_key
            and common_tokens.token_address = linked_positions.token_address

),

linked as (

    select
        tenant_id,
        subject_key,
        network,
        token_address,
        pair_key,
        'Linked' as origin
    from linked_tokens

    union all

    select
        *,
        'Linked' as origin
    from linked_positions

    union all

    select
        *,
        'CommonToken' as origin
    from common_positions

),

described as (

    select
        linked.tenant_id,
        linked.subject_key,
        linked.network,
        linked.token_address,
        labels.decimals as token_decimals,
        linked.pair_key,
        pairs.pair_id,
        pairs.priced_as,
        pairs.priced_in,
        linked.origin
    from linked
    inner join pairs on linked.pair_key = pairs.pair_key
    left join labels
        on
            linked.tenant_id = labels.tenant_id
            and linked.network = labels.network
            and linked.token_address = labels.token_address

)

select * from described
order by subject_key, token_address
