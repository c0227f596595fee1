-- Windows that are not stored yet for any pair.
insert into raw.prices
select
    $source,
    $market,
    $type,
    incoming.window_start,
    incoming.effective_from,
    incoming.price,
    'Window',
    incoming.is_partial,
    $now,
    $now,
    $batch
from incoming_windows as incoming
where not exists (
    select 1 from raw.prices as known
    where
        known.source_id = $source
        and known.market_id = $market
        and known.price_type = $type
        and known.origin = 'Window'
        and known.effective_from between $least and $most
        and known.effective_from = incoming.effective_from
        and known.window_start = incoming.window_start
);
