{{
    config(
        materialized='appended_table',
        pre_hook=["{{ delete_changed_days() }}"],
    )
}}

with

changed_days as (

    select * from {{ ref('int_value_days') }}
    where
        kind = 'token'
        and is_changed

),

token_pairs as (

    select * from {{ ref('token_pairs') }}

),

changed_spans as (

    select
        subject_key,
        range_from_block,
        max(last_day) as last_day
    from changed_days
    group by subject_key, range_from_block

),

changes as (

    select
        changes.subject_key,
        changes.range_from_block,
        changes.block_number,
        changes.block_time,
        changes.total_supply_raw as quantity_raw
    from {{ ref('supply_changes') }} as changes
    inner join changed_spans
        on
            changes.subject_key = changed_spans.subject_key
            and changes.range_from_block = changed_spans.range_from_block
            and changes.block_time < changed_spans.last_day + 1

),

days as (

    select
        subject_key,
        range_from_block,
        unnest(generate_series(first_day, last_day, interval 1 day))::date as day
    from changed_days

),

supplies as (

    {{ quantities_by_day('changes', []) }}

),

linked as (

    select
        token_pairs.tenant_id,
        days.*,
        token_pairs.pair_key,
        token_pairs.token_decimals,
        supplies.quantity_raw as supply_raw
    from days
    inner join token_pairs on days.subject_key = token_pairs.subject_key
    left join supplies
        on
            days.subject_key = supplies.subject_key
            and days.range_from_block = supplies.range_from_block
            and days.day = supplies.day

),

moments as (

    select distinct
        pair_key,
        {{ end_of_day('day') }} as at_time
    from linked

),

prices as (

    {{
        prices_in_force('moments', earliest(
            "select first_day from " ~ ref('int_value_days') ~ " where kind = 'token' and is_changed"
        ))
    }}

),

valued as (

    select
        linked.*,
        prices.price,
        prices.price_text,
        prices.price_status,
        prices.price_effective_from,
        prices.source_id,
        prices.is_fallback,
        {{ to_amount('linked.supply_raw', 'linked.token_decimals') }} as supply,
        {{ to_value('linked.supply_raw', 'linked.token_decimals', 'prices.price') }} as value,
        case
            when prices.price_status != 'Priced' then prices.price_status
            when linked.supply_raw is null then 'UnknownSupply'
            when linked.token_decimals is null then 'UnknownDecimals'
            else 'Priced'
        end as value_status
    from linked
    inner join prices
        on
            linked.pair_key = prices.pair_key
            and prices.at_time = {{ end_of_day('linked.day') }}

)

select
    tenant_id,
    subject_key,
    range_from_block,
    day,
    pair_key,
    supply_raw,
    supply,
    supply::double as supply_approx,
    price,
    price_text,
    price_status,
    price_effective_from,
    source_id,
    is_fallback,
    value,
    value::double as value_approx,
    value_status
from valued
order by subject_key, day
