select
    subject_key,
    contract_status,
    metadata_status
from marts.tokens
where tenant_id = $tenant_id and subject_key = any($subject_keys)
