select
    total_supply_raw::varchar as total_supply_raw,
    total_supply,
    opened_by
from marts.supply_changes
where
    subject_key = $subject_key
    and tenant_id = $tenant_id
    and range_from_block = $first_block
    and block_number <= $block_number
order by block_number desc
limit 1
