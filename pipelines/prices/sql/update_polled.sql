-- Prices that were polled before: collected again, and replaced if they changed; batch_id is that of the last change.
update raw.prices
set
    price = incoming.price,
    last_collected_at = $now,
    batch_id = if(prices.price = incoming.price, prices.batch_id, $batch)
from incoming_prices as incoming
where
    prices.source_id = $source
    and prices.origin = 'Poll'
    and prices.effective_from >= $least
    and prices.market_id = incoming.market_id
    and prices.price_type = incoming.price_type
    and prices.effective_from = incoming.effective_from
returning prices.batch_id;
