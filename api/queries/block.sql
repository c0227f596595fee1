select
    block_number,
    block_hash,
    block_time
from marts.blocks
where network = $network and block_number = $block_number
