-- Pairs with source prices that the new set-up changes: all of them, or those from the earliest new manual price on.
insert into raw.price_changes
with changed as (
    (select pair_key from (select * from incoming_control_price_pairs except select * from raw.control_price_pairs))
    union
    (select pair_key from (select * from raw.control_price_pairs except select * from incoming_control_price_pairs))
    union
    (select pair_key from (select * from incoming_control_pair_sources except select * from raw.control_pair_sources))
    union
    (select pair_key from (select * from raw.control_pair_sources except select * from incoming_control_pair_sources))
    union
    (select pair_key from (select * from incoming_control_price_reviews except select * from raw.control_price_reviews))
    union
    (select pair_key from (select * from raw.control_price_reviews except select * from incoming_control_price_reviews))
)

select $batch, pair_key, null
from changed
union all
select $batch, routes.pair_key, min(prices.effective_from)
from incoming_control_manual_prices as prices
inner join raw.pair_routes as routes on prices.supported_pair_key = routes.supported_pair_key
group by routes.pair_key;
