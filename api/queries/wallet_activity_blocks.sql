-- Where the next rows of a page are: narrow, so that the wide query reads no more blocks than it shows.
select block_number
from marts.wallet_activities
where
    subject_key = $subject_key
    and tenant_id = $tenant_id
    and block_number between $first_block and $last_block
    and block_time >= $from_time
    and block_time < $to_time
    and ($activity_type is null or activity_type = $activity_type)
    and ($direction is null or direction = $direction)
    and ($token_address is null or token_address = $token_address)
    and ($counterparty is null or counterparty_address = $counterparty)
order by $order_sign * block_number
limit $row_count
