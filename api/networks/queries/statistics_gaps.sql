-- Times at which some subject should be covered but is not, as disjoint intervals; a null bound is open. A tracked
-- subject should be covered at all times, and another subject for the time of its view.
with ranges as (

    select
        subject_key,
        -- If the time of a gap's bound is not stored, use the nearest stored time outside the gap.
        coalesce(from_time, last_value(coalesce(to_time, from_time) ignore nulls) over earlier) as from_time,
        -- A gap ends at the start of the next range. After the newest block there is no next range.
        first_value(coalesce(from_time, to_time) ignore nulls) over later as to_time,
        is_covered,
        reason
    from marts.coverage
    where tenant_id = $tenant_id and subject_key = any($subject_keys)
    window
        earlier as (
            partition by subject_key
            order by from_block
            rows between unbounded preceding and 1 preceding
        ),
        later as (
            partition by subject_key
            order by from_block
            rows between 1 following and unbounded following
        )

),

missing as (

    select
        coalesce(from_time, '-infinity'::timestamp) as from_time,
        coalesce(to_time, 'infinity'::timestamp) as to_time
    from ranges
    where not is_covered and (subject_key = any($tracked_keys) or reason in ('NotYetCollected', 'ProviderFailed'))

    union all

    select
        '-infinity'::timestamp as from_time,
        'infinity'::timestamp as to_time
    from (select unnest($tracked_keys::bigint[]) as subject_key) as tracked
    anti join ranges on tracked.subject_key = ranges.subject_key

),

numbered as (

    select
        *,
        max(to_time) over (
            order by from_time, to_time
            rows between unbounded preceding and 1 preceding
        ) as reached
    from missing

),

merged as (

    select
        *,
        sum(case when from_time <= reached then 0 else 1 end) over (order by from_time, to_time) as island
    from numbered

)

select
    nullif(min(from_time), '-infinity'::timestamp) as from_time,
    nullif(max(to_time), 'infinity'::timestamp) as to_time
from merged
group by island
order by min(from_time)
