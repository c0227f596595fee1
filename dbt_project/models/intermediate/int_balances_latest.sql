{{
    config(
        materialized='appended_table',
        pre_hook=["{{ delete_touched_pairs() }}"],
    )
}}

-- The newest balance of every pair in each covered range, with the counts and blocks of its readings.
-- depends_on: {{ ref('int_balances_to_recompute') }}, {{ ref('int_frontier') }}, {{ ref('stg_pipeline__transforms') }}
with

points as (

    select points.* from ({{ written_points() }}) as points

),

written as (

    {{ latest_of('points') }}

),

-- Blocks before those that are computed again.
carried as (

    select * from {{ ref('int_balances_to_recompute') }}
    where is_carried

),

latest as (

    select
        coalesce(written.subject_key, carried.subject_key) as subject_key,
        coalesce(written.range_from_block, carried.range_from_block) as range_from_block,
        coalesce(written.balance_key, carried.balance_key) as balance_key,
        case when written.subject_key is null then carried.balance_raw else written.balance_raw end as balance_raw,
        coalesce(written.opened_by, carried.opened_by) as opened_by,
        coalesce(written.opening_block, carried.opening_block) as opening_block,
        coalesce(carried.first_moved_block, written.first_moved_block) as first_moved_block,
        greatest(written.moved_block, carried.moved_block) as moved_block,
        greatest(written.checked_block, carried.checked_block) as checked_block,
        case when written.checked_block is null then carried.read_raw else written.read_raw end as read_raw,
        coalesce(written.since_batch_id, carried.since_batch_id) as since_batch_id,
        {{ combined_counts('written', 'carried') }}
    from written
    full outer join carried on {{ is_same_row('written', 'carried') }}

)

select * from {{ named('latest') }} as named
