-- Prices for a bundle. A polled price becomes a window without length of each pair that may see it. Other tenants of the
-- new shard must not see it, since that shard polls at other times.
create or replace temp table moving_polls as
select distinct
    routes.pair_key,
    prices.source_id,
    prices.market_id,
    prices.price_type,
    prices.effective_from as window_start,
    prices.effective_from,
    prices.price,
    prices.first_collected_at,
    prices.last_collected_at,
    prices.batch_id
from raw.prices as prices
inner join raw.pair_routes as routes
    on
        prices.source_id = routes.source_id
        and prices.market_id = routes.market_id
        and prices.price_type = routes.price_type
inner join raw.control_price_pairs as pairs on routes.pair_key = pairs.pair_key
where
    prices.origin = 'Poll'
    and prices.last_collected_at >= pairs.created_at
    and routes.pair_key in (select moving_keys.pair_key from moving_keys where moving_keys.pair_key is not null);

insert into bundle.raw.prices by name
select prices.*
from raw.prices as prices
semi join bundle.raw.pair_windows as windows
    on
        prices.source_id = windows.source_id
        and prices.market_id = windows.market_id
        and prices.price_type = windows.price_type
        and prices.window_start = windows.window_start
        and prices.effective_from = windows.effective_from;

insert into bundle.raw.pair_windows
select
    pair_key,
    source_id,
    market_id,
    price_type,
    window_start,
    effective_from
from moving_polls
except
select *
from bundle.raw.pair_windows;

insert into bundle.raw.prices by name
select
    polls.source_id,
    polls.market_id,
    polls.price_type,
    polls.window_start,
    polls.effective_from,
    'Window' as origin,
    false as is_partial,
    any_value(polls.price) as price,
    min(polls.first_collected_at) as first_collected_at,
    max(polls.last_collected_at) as last_collected_at,
    max(polls.batch_id) as batch_id
from moving_polls as polls
anti join bundle.raw.prices as known using (source_id, market_id, price_type, window_start, effective_from)
group by all;

insert into bundle.raw.markets by name
select markets.*
from raw.markets as markets
where
    (markets.source_id, markets.market_id) in (
        select (windows.source_id, windows.market_id) from bundle.raw.pair_windows as windows
        union
        select (readings.source_id, readings.market_id) from bundle.raw.discovery_readings as readings
        union
        select (routes.source_id, routes.market_id)
        from raw.pair_routes as routes
        where routes.pair_key in (select moving_keys.pair_key from moving_keys where moving_keys.pair_key is not null)
    );
