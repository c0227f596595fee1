select
    total_supply_raw::varchar as total_supply_raw,
    total_supply,
    supply_status,
    holder_count,
    unattributed_raw::varchar as unattributed_raw,
    unattributed,
    unattributed_percentage,
    top10_percentage,
    hhi,
    gini,
    nakamoto
from marts.cap_table_summaries
where subject_key = $subject_key and tenant_id = $tenant_id
