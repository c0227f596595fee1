-- Windows without a price, neighbours united, of discoveries that are unfinished in the control store.
with gaps as (
    select
        gaps.*,
        coalesce(
            gaps.from_time > max(gaps.to_time) over (
                partition by gaps.operation_key, gaps.source_id
                order by gaps.from_time, gaps.to_time
                rows between unbounded preceding and 1 preceding
            ),
            true
        ) as is_first
    from raw.discovery_gaps as gaps
    inner join raw.control_price_discoveries as requests on gaps.operation_key = requests.operation_key
    where requests.status in ('Pending', 'Running')
),

numbered as (
    select
        *,
        count_if(is_first) over (
            partition by operation_key, source_id
            order by from_time, to_time
            rows unbounded preceding
        ) as gap_number
    from gaps
)

select operation_key, source_id, min(from_time) as from_time, max(to_time) as to_time
from numbered
group by operation_key, source_id, gap_number
order by operation_key, source_id, from_time;
