select
    total_supply_raw::varchar as total_supply_raw,
    total_supply,
    supply_status,
    holder_count,
    holders_status,
    unattributed_raw::varchar as unattributed_raw,
    unattributed,
    unattributed_percentage,
    unattributed_status,
    top10_percentage,
    top10_status,
    hhi,
    hhi_status,
    gini,
    gini_status,
    nakamoto,
    nakamoto_status
from marts.cap_table_summaries
where subject_key = $subject_key and tenant_id = $tenant_id
