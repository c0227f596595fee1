{{ config(materialized='view', contract={'enforced': false}) }}

-- Every step is grouped by tenant and token, by which readers filter, so that only their rows are read.
with

held_ranges as (

    select
        tenant_id,
        subject_key,
        from_block,
        from_time,
        is_covered,
        is_covered
        and from_block = max(case when is_covered then from_block end) over (
            partition by tenant_id, subject_key
        ) as is_newest,
        {{ held_until_time() }} as held_until_time
    from {{ beside(ref('coverage')) }}

),

finished_days as (

    select
        tenant_id,
        subject_key,
        from_block as range_from_block,
        is_newest,
        unnest(generate_series(from_time::date, held_until_time::date - 1, interval 1 day))::date as day
    from held_ranges
    where
        is_covered
        and from_time is not null

),

changes as (

    select
        tenant_id,
        subject_key,
        range_from_block,
        day,
        0 as holder_change,
        true as is_finished,
        is_newest
    from finished_days

    union all

    select
        tenant_id,
        subject_key,
        range_from_block,
        block_time::date as day,
        holder_change,
        false as is_finished,
        null as is_newest
    from {{ beside(ref('balance_changes')) }}
    where holder_change != 0

),

days as (

    select
        tenant_id,
        subject_key,
        range_from_block,
        day,
        sum(holder_change)::bigint as holder_change,
        bool_or(is_finished) as is_finished,
        bool_or(is_newest) as is_newest
    from changes
    group by tenant_id, subject_key, range_from_block, day

),

counted as (

    select
        *,
        sum(holder_change) over (
            partition by tenant_id, subject_key, range_from_block
            order by day
        )::bigint as holder_count
    from days

)

select
    counted.tenant_id,
    counted.subject_key,
    counted.range_from_block,
    counted.day,
    counted.holder_count,
    counted.holder_change,
    counted.is_newest and tokens.opens_without_holders as opens_without_holders
from counted
inner join {{ beside(ref('tokens')) }} as tokens on counted.subject_key = tokens.subject_key
where counted.is_finished
