select
    contract_status,
    standard,
    behaviour,
    decimals,
    total_supply_raw::varchar as total_supply_raw,
    total_supply,
    holder_count,
    coalesce(holders_status, 'HoldersUnknown') as holders_status,
    as_of_block_number,
    as_of_block_hash,
    as_of_block_time,
    as_of_finality
from marts.tokens
left join
    (
        select subject_key, holders_status
        from marts.cap_table_summaries
        where subject_key = $subject_key and tenant_id = $tenant_id
    ) as summaries using (subject_key)
where subject_key = $subject_key and tenant_id = $tenant_id
