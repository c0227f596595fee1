select
    pair_key,
    pair_id,
    priced_as,
    priced_in,
    price_type,
    max_age_seconds
from marts.price_pairs
where tenant_id = $tenant_id and pair_key = any($pair_keys)
