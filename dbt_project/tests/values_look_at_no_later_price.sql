{{ config(tags=['audit']) }}

-- Values with a price that became effective later than the valued moment.
with

valued as (

    select
        activity_id as name,
        block_time as at_time,
        price_effective_from
    from {{ ref('token_activity_values') }}

    union all

    select
        activity_id as name,
        block_time as at_time,
        price_effective_from
    from {{ ref('wallet_activity_values') }}

    union all

    select
        subject_key || ' ' || day as name,
        {{ end_of_day('day') }} as at_time,
        price_effective_from
    from {{ ref('token_value_days') }}

    union all

    select
        pair_key::varchar as name,
        at_time,
        price_effective_from
    from {{ ref('as_of_prices') }}

)

select * from valued
where price_effective_from > at_time
