select count(*) as row_count
from marts.cap_tables
where
    subject_key = $subject_key
    and tenant_id = $tenant_id
    and ($search is null or contains(holder_address, $search) or holder_address = any($named))
    and ($reconciliation is null or reconciliation = $reconciliation)
