-- Which activities lie between two keys, both included, and their quantities. The id holds hash and place of the row;
-- status, value and what is shown of the token may change.
select coalesce(bit_xor(md5_number(concat_ws('|', activity_id, from_address is null, amount_raw))), 0) as digest
from marts.token_activities
where
    subject_key = $subject_key
    and tenant_id = $tenant_id
    and block_number between $first_block and $last_block
    and (
        block_number > $first_block
        or (transaction_index, log_index, activity_id)
        >= ($first_transaction, $first_log, $first_id)
    )
    and (
        block_number < $last_block
        or (transaction_index, log_index, activity_id)
        <= ($last_transaction, $last_log, $last_id)
    )
    and block_time >= $from_time
    and block_time < $to_time
    and ($activity_type is null or activity_type = $activity_type)
    and ($status is null or status = $status)
    and ($wallet is null or from_address = $wallet or to_address = $wallet)
    and ($minimum_raw is null or token_activities.amount_raw >= $minimum_raw::bignum)
