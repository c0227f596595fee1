-- Marks markets that the source no longer lists as inactive.
update raw.markets
set is_active = false, batch_id = $batch
where
    source_id = $source
    and is_active
    and not exists (select 1 from incoming_markets as incoming where incoming.market_id = markets.market_id);
