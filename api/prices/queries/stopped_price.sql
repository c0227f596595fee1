-- One price of a pair that its guards stop or that was reviewed.
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
    and price_id = $price_id
    and state in ('Quarantined', 'Accepted', 'Rejected')
