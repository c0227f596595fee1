-- The pairs that could value common tokens in the version.
select
    pair_key,
    priced_as,
    price_type
from marts.price_pairs
where tenant_id = $tenant_id and priced_in = $currency
