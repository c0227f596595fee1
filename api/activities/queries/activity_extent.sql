select
    count(*) as activity_count,
    coalesce(min(block_number), 0) as first_block,
    coalesce(max(block_number), -1) as last_block
from marts.{{ kind }}_activities
where subject_key = $subject_key and tenant_id = $tenant_id
