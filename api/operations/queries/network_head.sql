-- The head, and the oldest block that was stored of the tail, whoever tracks what: between them lie so many blocks.
select
    networks.head_number,
    networks.head_time,
    (select min(block_number) from marts.blocks where network = $network and is_tail) as tail_number,
    (select min(block_time) from marts.blocks where network = $network and is_tail) as tail_time
from marts.networks as networks
where networks.network = $network
