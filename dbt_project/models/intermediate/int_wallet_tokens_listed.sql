-- Tokens that a wallet shows even if they never moved in its view: the native asset, the network's common tokens and
-- the tenant's own tokens (token_id). Readings of other tokens were made for other tenants.
with

subjects as (

    select * from {{ ref('stg_control__subjects') }}

),

wallets as (

    select * from subjects
    where kind = 'wallet'

),

common_tokens as (

    select * from {{ ref('stg_chain__common_tokens') }}

),

own_tokens as (

    select
        wallets.subject_key,
        tokens.address as token_address,
        -- The token of the wallet's own ledger, else the first one added on another ledger of the network.
        arg_min(tokens.subject_id, (tokens.ledger_id != wallets.ledger_id, tokens.subject_key)) as token_id
    from wallets
    inner join subjects as tokens
        on
            wallets.tenant_id = tokens.tenant_id
            and wallets.network = tokens.network
            and tokens.kind = 'token'
    group by wallets.subject_key, tokens.address

),

always_listed as (

    select
        subject_key,
        'native' as token_address
    from wallets

    union distinct

    select
        wallets.subject_key,
        common_tokens.token_address
    from wallets
    inner join common_tokens on wallets.network = common_tokens.network

),

listed as (

    select
        coalesce(own_tokens.subject_key, always_listed.subject_key) as subject_key,
        coalesce(own_tokens.token_address, always_listed.token_address) as token_address,
        own_tokens.token_id
    from own_tokens
    full outer join always_listed
        on
            own_tokens.subject_key = always_listed.subject_key
            and own_tokens.token_address = always_listed.token_address

)

select * from listed
