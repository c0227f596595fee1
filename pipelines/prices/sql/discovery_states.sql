-- States of the discoveries that the control store holds as unfinished. The progress of a source is that of its slowest
-- market.
with readings as (
    select
        operation_key,
        source_id,
        min(windows_done) as windows_done,
        sum(prices_stored)::bigint as prices_stored,
        string_agg(distinct error, '; ' order by error) as error,
        sum(problem_count)::bigint as problem_count,
        any_value(problem) as problem
    from raw.discovery_readings
    group by operation_key, source_id
),

discoveries as (
    select
        operation_key,
        sum(windows_done)::bigint as windows_done,
        count(*) as source_count,
        sum(prices_stored)::bigint as prices_stored,
        string_agg(error, '; ' order by source_id) as error,
        sum(problem_count)::bigint as problem_count,
        any_value(problem) as problem
    from readings
    group by operation_key
)

select
    requests.operation_key,
    coalesce(known.status, 'Pending') as status,
    coalesce(discoveries.windows_done, 0) as done,
    known.window_count * discoveries.source_count as total,
    coalesce(discoveries.prices_stored, 0) as prices_stored,
    coalesce(known.error, discoveries.error) as error,
    coalesce(discoveries.problem_count, 0) as problem_count,
    discoveries.problem
from raw.control_price_discoveries as requests
left join raw.price_discoveries as known on requests.operation_key = known.operation_key
left join discoveries on requests.operation_key = discoveries.operation_key
where requests.status in ('Pending', 'Running')
order by requests.operation_key;
