-- Windows that are new to the pair.
insert into raw.pair_windows
select $pair, $source, $market, $type, incoming.window_start, incoming.effective_from
from incoming_windows as incoming
where not exists (
    select 1 from raw.pair_windows as known
    where
        known.pair_key = $pair
        and known.source_id = $source
        and known.market_id = $market
        and known.price_type = $type
        and known.effective_from between $least and $most
        and known.effective_from = incoming.effective_from
        and known.window_start = incoming.window_start
);
