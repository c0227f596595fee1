select
    block_number,
    block_hash,
    block_time
from marts.blocks
where
    network = $network
    and block_number between $first_block and $last_block
    and block_time < $end_time
order by block_number desc
limit 1
