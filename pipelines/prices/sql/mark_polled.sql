-- Pairs with new data from a poll: a new or changed price, or one that was last collected before the pair was created.
insert into raw.price_changes
select $batch, routes.pair_key, min(incoming.effective_from)
from incoming_prices as incoming
inner join raw.pair_routes as routes
    on routes.source_id = $source
    and incoming.market_id = routes.market_id
    and incoming.price_type = routes.price_type
inner join raw.control_price_pairs as pairs on routes.pair_key = pairs.pair_key
left join raw.prices as known
    on known.source_id = $source
    and known.origin = 'Poll'
    and known.effective_from >= $least
    and incoming.market_id = known.market_id
    and incoming.price_type = known.price_type
    and incoming.effective_from = known.effective_from
where known.price is distinct from incoming.price or known.last_collected_at < pairs.created_at
group by routes.pair_key;
