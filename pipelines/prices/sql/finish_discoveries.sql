-- Ends discoveries with no market left to read. They fail if all markets were given up. Otherwise they succeed as soon
-- as their changes are published.
update raw.price_discoveries as discoveries
set status = if(ended.is_failure, 'Failed', 'Succeeded')
from (
    select
        operation_key,
        bool_and(is_finished) as is_finished,
        bool_and(is_given_up) as is_failure
    from raw.discovery_readings
    group by operation_key
) as ended
where
    discoveries.status = 'Running'
    and discoveries.operation_key = ended.operation_key
    and ended.is_finished
    and (
        ended.is_failure
        or discoveries.changed_batch is null
        or discoveries.changed_batch <= (select coalesce(max(batch_id), -1) from raw.publications)
    );
