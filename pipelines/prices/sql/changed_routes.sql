-- Pairs with routes that differ from the stored ones.
select pair_key from (select * from incoming_routes except select * from raw.pair_routes)
union
select pair_key from (select * from raw.pair_routes except select * from incoming_routes)
order by pair_key;
