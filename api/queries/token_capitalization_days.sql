select
    day,
    supply_raw::varchar as supply_raw,
    supply,
    supply_status,
    price_text as price,
    price_status,
    value,
    value_status
from marts.token_capitalization_days
where subject_key = $subject_key and tenant_id = $tenant_id and day between $first_day and $last_day
order by day
