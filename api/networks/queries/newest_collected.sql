-- The newest collected block of any of the subjects.
select
    to_block as block_number,
    to_time as block_time
from marts.coverage
where tenant_id = $tenant_id and subject_key = any($subject_keys) and is_covered
order by to_block desc, to_time desc nulls last
limit 1
