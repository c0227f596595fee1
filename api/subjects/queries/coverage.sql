select
    from_block,
    to_block,
    from_time,
    to_time,
    is_covered,
    reason,
    verified,
    source
from marts.coverage
where subject_key = $subject_key and tenant_id = $tenant_id
order by from_block nulls first, from_time nulls first
