-- Markets that the source lists for the first time.
insert into raw.markets
select
    $source,
    incoming.market_id,
    incoming.base,
    incoming.quote,
    incoming.base_code,
    incoming.quote_code,
    incoming.is_active,
    $now,
    $now,
    $batch
from incoming_markets as incoming
where not exists (
    select 1 from raw.markets where markets.source_id = $source and markets.market_id = incoming.market_id
);
