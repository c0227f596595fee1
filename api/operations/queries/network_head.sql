-- The head of a network, and the oldest stored block of its tail, independent of tenants. Their distance gives the time
-- between blocks.
select
    networks.head_number,
    networks.head_time,
    (select min(block_number) from marts.blocks where network = $network and is_tail) as tail_number,
    (select min(block_time) from marts.blocks where network = $network and is_tail) as tail_time
from marts.networks as networks
where networks.network = $network
