-- Pairs with new data from a part of a discovery. The pair itself is one if a window is new to it; so is every pair
-- with a window that has another price now.
insert into raw.price_changes
with known as (
    select window_start, effective_from, price, is_partial
    from raw.prices
    where
        source_id = $source
        and market_id = $market
        and price_type = $type
        and origin = 'Window'
        and effective_from between $least and $most
),

seen as (
    select pair_key, window_start, effective_from
    from raw.pair_windows
    where
        source_id = $source
        and market_id = $market
        and price_type = $type
        and effective_from between $least and $most
),

changed as (
    select seen.pair_key, incoming.effective_from
    from incoming_windows as incoming
    inner join known
        on incoming.window_start = known.window_start and incoming.effective_from = known.effective_from
    inner join seen
        on incoming.window_start = seen.window_start and incoming.effective_from = seen.effective_from
    where incoming.price != known.price or (known.is_partial and not incoming.is_partial)
    union all
    select $pair, incoming.effective_from
    from incoming_windows as incoming
    left join seen
        on seen.pair_key = $pair
        and incoming.window_start = seen.window_start
        and incoming.effective_from = seen.effective_from
    where seen.pair_key is null
)

select $batch, pair_key, min(effective_from)
from changed
group by pair_key;
