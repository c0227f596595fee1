-- Windows that are stored already: collected again, and replaced if their price changed. A window that was complete for
-- any pair is not partial.
update raw.prices
set
    price = incoming.price,
    is_partial = prices.is_partial and incoming.is_partial,
    last_collected_at = $now,
    batch_id = if(prices.price = incoming.price, prices.batch_id, $batch)
from incoming_windows as incoming
where
    prices.source_id = $source
    and prices.market_id = $market
    and prices.price_type = $type
    and prices.origin = 'Window'
    and prices.effective_from between $least and $most
    and prices.effective_from = incoming.effective_from
    and prices.window_start = incoming.window_start;
