-- The last supply in each interval with its status at the end, and the last one before all intervals (bucket null).
select
    range_from_block,
    case when block_time >= $from_time then date_trunc($unit, block_time) end as bucket,
    total_supply_raw::varchar as total_supply_raw,
    total_supply,
    supply_status_after as supply_status
from marts.token_supplies
where
    subject_key = $subject_key
    and tenant_id = $tenant_id
    and block_number <= $last_block
    and block_time < $to_time
qualify row_number() over (partition by bucket order by block_number desc, range_from_block desc) = 1
order by bucket nulls first
