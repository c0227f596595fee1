-- One source's prices of a pair, newest first.
select
    price_id,
    effective_from,
    window_start,
    price_text as price,
    is_partial,
    derivation,
    fresh_until,
    position,
    state,
    reason
from marts.source_prices
where
    tenant_id = $tenant_id
    and pair_key = $pair_key
    and source_id = $source_id
    and effective_from >= $from_time
    and effective_from < $to_time
order by effective_from desc
limit $row_count
