-- Prices that were not polled before.
insert into raw.prices
select
    $source,
    incoming.market_id,
    incoming.price_type,
    null,
    incoming.effective_from,
    incoming.price,
    'Poll',
    false,
    $now,
    $now,
    $batch
from incoming_prices as incoming
where not exists (
    select 1 from raw.prices as known
    where
        known.source_id = $source
        and known.origin = 'Poll'
        and known.effective_from >= $least
        and known.market_id = incoming.market_id
        and known.price_type = incoming.price_type
        and known.effective_from = incoming.effective_from
);
