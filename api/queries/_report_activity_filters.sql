subject_key = $subject_key
    and tenant_id = $tenant_id
    and block_time >= $from_time
    and block_time < $to_time
    and ($activity_type is null or activity_type = $activity_type)
    and ($direction is null or direction = $direction)
    and ($token_address is null or token_address = $token_address)
    and (
        $search is null
        or contains(transaction_hash, $search)
        or contains(counterparty_address, $search)
        or counterparty_address = any($named)
    )
    and (
        not $is_folded
        or activity_type <> 'Fee'
        or transaction_hash is null
        or transaction_hash not in (select moved.transaction_hash from moved)
    )
