-- The steps of a pair's system price that have a price, newest first.
select
    valid_from,
    valid_until,
    price_text as price,
    source_id,
    is_fallback,
    effective_from,
    window_start,
    is_partial,
    derivation
from marts.system_prices
where
    tenant_id = $tenant_id
    and pair_key = $pair_key
    and price_text is not null
    and valid_from >= $from_time
    and valid_from < $to_time
order by valid_from desc
limit $row_count
