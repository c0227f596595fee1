-- The last balance of each token in each interval, and the last one before all intervals (bucket null).
select
    token_address,
    token_symbol,
    range_from_block,
    case when block_time >= $from_time then date_trunc($unit, block_time) end as bucket,
    balance_raw::varchar as balance_raw,
    balance
from marts.balance_changes
where
    subject_key = $subject_key
    and tenant_id = $tenant_id
    and block_number <= $last_block
    and block_time < $to_time
qualify
    row_number() over (partition by token_address, bucket order by block_number desc, range_from_block desc) = 1
order by token_address, bucket nulls first
