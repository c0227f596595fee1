-- Where the next rows of a page are: narrow, so that the wide query reads no more blocks than it shows.
select block_number
from marts.token_activities
where
    subject_key = $subject_key
    and tenant_id = $tenant_id
    and block_number between $first_block and $last_block
    and block_time >= $from_time
    and block_time < $to_time
    and ($activity_type is null or activity_type = $activity_type)
    and ($status is null or status = $status)
    and ($wallet is null or from_address = $wallet or to_address = $wallet)
    and ($minimum_raw is null or token_activities.amount_raw >= $minimum_raw::bignum)
order by $order_sign * block_number
limit $row_count
