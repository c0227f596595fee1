-- Markets that the source still lists; batch_id is that of their last change.
update raw.markets
set
    base = incoming.base,
    quote = incoming.quote,
    base_code = incoming.base_code,
    quote_code = incoming.quote_code,
    is_active = incoming.is_active,
    last_listed_at = $now,
    batch_id = if(
        (markets.base, markets.quote, markets.base_code, markets.quote_code, markets.is_active)
        = (incoming.base, incoming.quote, incoming.base_code, incoming.quote_code, incoming.is_active),
        markets.batch_id,
        $batch
    )
from incoming_markets as incoming
where markets.source_id = $source and markets.market_id = incoming.market_id;
