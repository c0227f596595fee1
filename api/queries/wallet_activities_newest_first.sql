select
    activity_id,
    activity_type,
    direction,
    status,
    block_number,
    block_time,
    transaction_index,
    log_index,
    trace_index,
    transaction_hash,
    counterparty_address,
    token_address,
    token_id,
    token_symbol,
    amount_raw::varchar as amount_raw,
    amount,
    is_located,
    amount_status
from marts.wallet_activities
where
    subject_key = $subject_key
    and tenant_id = $tenant_id
    and block_number between $first_block and $last_block
    and (block_number, transaction_index, log_index, coalesce(trace_index, -1), activity_id)
    < ($after_block, $after_transaction, $after_log, $after_trace, $after_id)
    and block_time >= $from_time
    and block_time < $to_time
    and ($activity_type is null or activity_type = $activity_type)
    and ($direction is null or direction = $direction)
    and ($token_address is null or token_address = $token_address)
    and ($counterparty is null or counterparty_address = $counterparty)
order by block_number desc, transaction_index desc, log_index desc, coalesce(trace_index, -1) desc, activity_id desc
limit $row_count
