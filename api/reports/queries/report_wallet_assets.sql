select
    token_address,
    any_value(token_symbol) as token_symbol,
    any_value(token_id) as token_id
from marts.wallet_activities
where
    subject_key = $subject_key
    and tenant_id = $tenant_id
    and block_time >= $from_time
    and block_time < $to_time
group by token_address
order by lower(coalesce(any_value(token_symbol), token_address)), token_address
