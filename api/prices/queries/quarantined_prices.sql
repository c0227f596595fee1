-- Prices of a pair that its guards stopped, newest first, after a position.
select
    price_id,
    effective_from,
    window_start,
    price_text as price,
    is_partial,
    source_id,
    derivation,
    reason,
    price is not null as is_usable
from marts.source_prices
where
    tenant_id = $tenant_id
    and pair_key = $pair_key
    and state = 'Quarantined'
    and (effective_from, price_id) < ($before_time, $before_id)
order by effective_from desc, price_id desc
limit $row_count
