select
    subject_key,
    holder_count,
    holders_status
from marts.cap_table_summaries
where tenant_id = $tenant_id and subject_key = any($subject_keys)
