with rows_of_batch as (
    select block_number, block_hash from raw.movements where network = $network and batch_id = $batch
    union
    select block_number, block_hash from raw.balance_observations where network = $network and batch_id = $batch
)

select count(*), any_value(format('block {} with hash {}', rows_of_batch.block_number, rows_of_batch.block_hash))
from rows_of_batch
anti join raw.blocks
    on blocks.network = $network
    and rows_of_batch.block_number = blocks.block_number
    and rows_of_batch.block_hash = blocks.block_hash;
