-- The first of the new headers, and the stored ones around them, that is dated before its predecessor.
with bounds as (
    select min(block_number) as first_block, max(block_number) as last_block from headers
),

around as (
    select block_number, block_time from headers
    union all
    select blocks.block_number, blocks.block_time
    from raw.blocks
    inner join bounds on blocks.block_number between bounds.first_block and bounds.last_block
    where blocks.network = $network
    union all
    select max(blocks.block_number), arg_max(blocks.block_time, blocks.block_number)
    from raw.blocks
    inner join bounds on blocks.block_number < bounds.first_block
    where blocks.network = $network
    union all
    select min(blocks.block_number), arg_min(blocks.block_time, blocks.block_number)
    from raw.blocks
    inner join bounds on blocks.block_number > bounds.last_block
    where blocks.network = $network
)

select
    block_number,
    block_time,
    lag(block_number) over (order by block_number, block_time) as earlier_number,
    lag(block_time) over (order by block_number, block_time) as earlier_time
from around
where block_number is not null
qualify block_time < earlier_time
order by block_number
limit 1;
