select
    contract_status,
    standard,
    behaviour,
    decimals,
    created_block_number,
    total_supply_raw::varchar as total_supply_raw,
    total_supply,
    total_supply_status,
    holder_count,
    as_of_block_number,
    as_of_block_hash,
    as_of_block_time,
    as_of_finality,
    metadata_status
from marts.tokens
where subject_key = $subject_key and tenant_id = $tenant_id
