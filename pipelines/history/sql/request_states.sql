-- States of the requests that the control store holds as unfinished.
select
    requests.operation_key,
    coalesce(known.status, 'Pending'),
    known.from_block,
    known.to_block,
    known.native,
    known.note,
    known.error,
    coalesce(
        (
            select sum(least(covered.to_block, known.to_block) - greatest(covered.from_block, known.from_block) + 1)
            from raw.covered_ranges as covered
            where
                covered.subject_key = known.subject_key
                and not covered.is_native
                and covered.from_block <= known.to_block
                and covered.to_block >= known.from_block
        ),
        0
    )::bigint as done,
    known.to_block - known.from_block + 1 as total,
    coalesce(known.worked_blocks, 0),
    coalesce(known.worked_seconds, 0),
    subjects.network
from raw.control_history_requests as requests
inner join raw.control_subjects as subjects on requests.subject_key = subjects.subject_key
left join raw.history_requests as known on requests.operation_key = known.operation_key
where requests.status in ('Pending', 'Running')
order by requests.operation_key;
