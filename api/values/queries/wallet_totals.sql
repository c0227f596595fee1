select
    subject_key,
    total_value,
    total_value_status,
    value_complete,
    unpriced,
    change24h,
    change24h_status,
    change24h_omitted
from marts.wallet_totals
where tenant_id = $tenant_id and subject_key = any($subject_keys)
