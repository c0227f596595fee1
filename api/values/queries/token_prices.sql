select
    subject_key,
    pair_key,
    price_text as price,
    price_status,
    market_capitalization,
    market_capitalization_status,
    change24h,
    change24h_status
from marts.token_prices
where tenant_id = $tenant_id and subject_key = any($subject_keys)
