select
    activity_id,
    activity_type,
    status,
    block_number,
    block_time,
    transaction_index,
    log_index,
    transaction_hash,
    from_address,
    to_address,
    amount_raw::varchar as amount_raw,
    amount,
    is_located
from marts.token_activities
where
    subject_key = $subject_key
    and tenant_id = $tenant_id
    and block_number between $first_block and $last_block
    and (block_number, transaction_index, log_index, activity_id)
    > ($after_block, $after_transaction, $after_log, $after_id)
    and block_time >= $from_time
    and block_time < $to_time
    and ($activity_type is null or activity_type = $activity_type)
    and ($status is null or status = $status)
    and ($wallet is null or from_address = $wallet or to_address = $wallet)
    and ($minimum_raw is null or token_activities.amount_raw >= $minimum_raw::bignum)
order by block_number, transaction_index, log_index, activity_id
limit $row_count
