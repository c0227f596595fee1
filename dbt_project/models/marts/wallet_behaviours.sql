-- A token behaves for a wallet as the tenant's own token does; where the tenant has none, as the readings of all its
-- wallets on the network say by the same rule.
with

wallets as (

    select * from {{ ref('stg_control__subjects') }}
    where kind = 'wallet'

),

balances as (

    select
        wallets.tenant_id,
        wallets.network,
        balances.*
    from {{ ref('int_balances_latest') }} as balances
    inner join wallets on balances.subject_key = wallets.subject_key

),

held as (

    select distinct
        tenant_id,
        network,
        subject_key,
        token_address
    from balances

),

readings as (

    select
        balances.tenant_id,
        balances.network,
        balances.token_address,
        {{ behaviour_counts('balances') }}
    from balances
    where balances.reading_count > 0
    group by balances.tenant_id, balances.network, balances.token_address

),

listed_tokens as (

    select * from {{ ref('int_wallet_tokens_listed') }}
    where token_id is not null

),

tokens as (

    select * from {{ ref('tokens') }}

)

select
    held.tenant_id,
    held.subject_key,
    held.token_address,
    case
        when held.token_address = 'native' then 'Standard'
        when listed_tokens.token_id is not null then tokens.behaviour
        else {{ behaviour('readings') }}
    end as behaviour
from held
left join readings
    on
        held.tenant_id = readings.tenant_id
        and held.network = readings.network
        and held.token_address = readings.token_address
left join listed_tokens
    on
        held.subject_key = listed_tokens.subject_key
        and held.token_address = listed_tokens.token_address
left join tokens on listed_tokens.token_id = tokens.token_id
