-- Which activities lie between two keys, both included, and their quantities. The id holds hash and place of the row;
-- status, value and what is shown of the token may change.
select coalesce(bit_xor(md5_number(concat_ws('|', activity_id, direction, amount_raw))), 0) as digest
from marts.wallet_activities
where
    subject_key = $subject_key
    and tenant_id = $tenant_id
    and block_number between $first_block and $last_block
    and (
        block_number > $first_block
        or (transaction_index, log_index, coalesce(trace_index, -1), activity_id)
        >= ($first_transaction, $first_log, $first_trace, $first_id)
    )
    and (
        block_number < $last_block
        or (transaction_index, log_index, coalesce(trace_index, -1), activity_id)
        <= ($last_transaction, $last_log, $last_trace, $last_id)
    )
    and block_time >= $from_time
    and block_time < $to_time
    and ($activity_type is null or activity_type = $activity_type)
    and ($direction is null or direction = $direction)
    and ($token_address is null or token_address = $token_address)
    and ($counterparty is null or counterparty_address = $counterparty)
