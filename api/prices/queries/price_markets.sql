-- The markets of some sources between some codes.
select
    source_id,
    market_id,
    base,
    quote,
    base_code,
    quote_code,
    is_active
from marts.price_markets
where
    source_id = any($source_ids)
    and (base = any($codes) or base_code = any($codes))
    and (quote = any($codes) or quote_code = any($codes))
order by source_id, market_id
