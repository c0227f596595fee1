select
    day,
    value,
    value_status,
    value_complete,
    unpriced
from marts.wallet_value_days
where subject_key = $subject_key and tenant_id = $tenant_id and day between $first_day and $last_day
order by day
