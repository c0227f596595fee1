-- Behaviours of tokens, for each token and for each wallet's tokens. A token's own readings decide it. A wallet's token
-- has the behaviour of the tenant's own token. If the tenant has none, the readings of all its wallets on the network
-- decide by the same rule.
with

subjects as (

    select * from {{ ref('stg_control__subjects') }}

),

-- Most balances are those of tokens' holders, and few of them were read. The latest balances have no common table
-- expression here: DuckDB would copy the whole table if two expressions named it.
read as (

    select
        subjects.tenant_id,
        subjects.network,
        subjects.kind,
        latest.*
    from {{ ref('int_balances_latest') }} as latest
    inner join subjects on latest.subject_key = subjects.subject_key
    where
        latest.reading_count > 0
        and latest.holder_address != {{ supply_holder() }}

),

token_readings as (

    select
        read.subject_key,
        {{ behaviour_counts('read') }}
    from read
    where read.kind = 'token'
    group by read.subject_key

),

of_tokens as (

    select
        subjects.subject_key,
        subjects.subject_id as token_id,
        subjects.address as token_address,
        {{ behaviour('readings') }} as behaviour
    from subjects
    left join token_readings as readings on subjects.subject_key = readings.subject_key
    where subjects.kind = 'token'

),

held as (

    select distinct
        subjects.tenant_id,
        subjects.network,
        latest.subject_key,
        latest.token_address
    from {{ ref('int_balances_latest') }} as latest
    inner join subjects on latest.subject_key = subjects.subject_key
    where subjects.kind = 'wallet'

),

wallet_readings as (

    select
        read.tenant_id,
        read.network,
        read.token_address,
        {{ behaviour_counts('read') }}
    from read
    where read.kind = 'wallet'
    group by read.tenant_id, read.network, read.token_address

),

listed_tokens as (

    select * from {{ ref('int_wallet_tokens_listed') }}
    where token_id is not null

),

of_wallets as (

    select
        held.subject_key,
        held.token_address,
        case
            when held.token_address = 'native' then 'Standard'
            when listed_tokens.token_id is not null then of_tokens.behaviour
            else {{ behaviour('readings') }}
        end as behaviour
    from held
    left join wallet_readings as readings
        on
            held.tenant_id = readings.tenant_id
            and held.network = readings.network
            and held.token_address = readings.token_address
    left join listed_tokens
        on
            held.subject_key = listed_tokens.subject_key
            and held.token_address = listed_tokens.token_address
    left join of_tokens on listed_tokens.token_id = of_tokens.token_id

),

final as (

    select
        subject_key,
        token_address,
        behaviour
    from of_tokens
    union all
    select * from of_wallets

)

select * from final
