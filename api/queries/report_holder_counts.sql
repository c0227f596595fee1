select
    subject_key,
    holder_count
from marts.tokens
where tenant_id = $tenant_id and subject_key = any($subject_keys)
