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
        kind = 'wallet'
        and is_changed

),

wallets as (

    select * from {{ ref('wallets') }}

),

token_pairs as (

    select * from {{ ref('token_pairs') }}

),

labels as (

    select * from {{ ref('int_tokens_labelled') }}

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
        changes.token_address,
        changes.block_number,
        changes.block_time,
        changes.balance_raw as quantity_raw
    from {{ ref('balance_changes') }} as changes
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

held as (

    {{ quantities_by_day('changes', ['token_address']) }}

),

positions as (

    select
        held.*,
        labels.decimals as token_decimals,
        coalesce(labels.symbol, held.token_address) as symbol,
        token_pairs.pair_key
    from held
    inner join wallets on held.subject_key = wallets.subject_key
    left join labels
        on
            wallets.tenant_id = labels.tenant_id
            and wallets.network = labels.network
            and held.token_address = labels.token_address
    left join token_pairs
        on
            held.subject_key = token_pairs.subject_key
            and held.token_address = token_pairs.token_address
    where held.quantity_raw != 0::bignum

),

moments as (

    select distinct
        pair_key,
        {{ end_of_day('day') }} as at_time
    from positions
    where pair_key is not null

),

prices as (

    {{
        prices_in_force('moments', earliest(
            "select first_day from " ~ ref('int_value_days') ~ " where kind = 'wallet' and is_changed"
        ))
    }}

),

valued as (

    select
        positions.subject_key,
        positions.range_from_block,
        positions.day,
        positions.symbol,
        {{ to_value_units('positions.quantity_raw', 'positions.token_decimals', 'prices.price') }} as units,
        {{ value_status('positions.token_decimals', 'positions.pair_key', 'prices.price_status') }} as status
    from positions
    left join prices
        on
            positions.pair_key = prices.pair_key
            and prices.at_time = {{ end_of_day('positions.day') }}

),

totals as (

    select
        subject_key,
        range_from_block,
        day,
        {{ total_columns() }}
    from valued
    group by subject_key, range_from_block, day

),

final as (

    select
        wallets.tenant_id,
        days.subject_key,
        days.range_from_block,
        days.day,
        case when totals.subject_key is null then '0' else totals.total_value end as value,
        coalesce(totals.total_status, 'Priced') as value_status,
        coalesce(totals.is_complete, true) as value_complete,
        coalesce(totals.unpriced, []) as unpriced,
        -- From the first block after the genesis block, which has no transactions.
        days.range_from_block <= 1 as holdings_complete
    from days
    inner join wallets on days.subject_key = wallets.subject_key
    left join totals
        on
            days.subject_key = totals.subject_key
            and days.range_from_block = totals.range_from_block
            and days.day = totals.day

)

select
    tenant_id,
    subject_key,
    range_from_block,
    day,
    value,
    value::double as value_approx,
    value_status,
    value_complete,
    unpriced,
    holdings_complete
from final
order by subject_key, day
