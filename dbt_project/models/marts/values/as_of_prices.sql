{%- set as_of_times -%}
    select
        subject_key,
        as_of_block_time as as_of_time
    from {{ ref('tokens') }}

    union all

    select
        subject_key,
        as_of_block_time as as_of_time
    from {{ ref('wallets') }}
{%- endset -%}

with

token_pairs as (

    select * from {{ ref('token_pairs') }}

),

as_of_times as (

    {{ as_of_times }}

),

moments as (

    select distinct
        token_pairs.pair_key,
        unnest([as_of_times.as_of_time, as_of_times.as_of_time - interval 24 hours]) as at_time
    from token_pairs
    inner join as_of_times on token_pairs.subject_key = as_of_times.subject_key
    where as_of_times.as_of_time is not null

),

prices as (

    {{
        prices_in_force('moments', earliest(
            'select as_of_time - interval 24 hours from (' ~ as_of_times ~ ') as as_of_times'
        ))
    }}

),

tenants as (

    select distinct
        tenant_id,
        pair_key
    from token_pairs

)

select
    tenants.tenant_id,
    prices.*
from prices
inner join tenants on prices.pair_key = tenants.pair_key
order by prices.pair_key, prices.at_time
