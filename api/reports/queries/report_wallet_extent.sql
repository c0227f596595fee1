select
    count(distinct counterparty_address) filter (where activity_type <> 'Self') as counterparty_count,
    max(block_time) as last_time
from marts.wallet_activities
where
    subject_key = $subject_key
    and tenant_id = $tenant_id
    and block_time >= $from_time
    and block_time < $to_time
