with tail as (
    select
        blocks.block_number,
        blocks.parent_hash,
        lag(blocks.block_number) over (order by blocks.block_number) as previous_number,
        lag(blocks.block_hash) over (order by blocks.block_number) as previous_hash
    from raw.blocks
    where
        blocks.network = $network
        -- A range of history may end after blocks that a killed cycle did not store.
        and blocks.block_number <= (
            select max(block_number) from raw.blocks where network = $network and is_tail is distinct from false
        )
        and blocks.block_number > (
            select coalesce(max(final_number), -1) from raw.network_states where network = $network
        )
        -- Only the newest part of a longer tail is stored without gaps.
        and blocks.block_number > (select max(block_number) - $tail from raw.blocks where network = $network)
        and $batch > 0
)

select
    count(*),
    any_value(format('block {} does not follow block {}', block_number, previous_number))
from tail
where
    previous_number is not null
    and (block_number != previous_number + 1 or parent_hash != previous_hash);
