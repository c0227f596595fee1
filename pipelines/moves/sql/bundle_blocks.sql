-- Headers of a network for a bundle: of rows and readings, where ranges begin and end, of attestations, the settled
-- block, and the tail.
insert into bundle.raw.blocks by name
with edges as (
    select from_block, to_block from bundle.raw.coverage
    where network = $network
    union all
    select from_block, to_block from bundle.raw.view_ranges
    where network = $network
),

numbers as (
    $rows
    union
    select block_number from bundle.raw.balance_observations
    where network = $network
    union
    select block_number from bundle.raw.supply_observations
    where network = $network
    union
    select unnest([from_block - 1, from_block, to_block, to_block + 1]) from edges
    union
    select block_number from bundle.raw.attestations
    where network = $network
    union
    select block_number from bundle.raw.period_ends
    where network = $network
    union
    select unnest([settled_number, settling_number]) from bundle.raw.known_chains
    where network = $network
    union
    select unnest([head_number, final_number]) from bundle.raw.network_states
    where network = $network
)

select blocks.*
from raw.blocks as blocks
where
    blocks.network = $network
    and (
        blocks.block_number in (select numbers.block_number from numbers where numbers.block_number is not null)
        or blocks.block_number > (
            select coalesce(max(states.final_number), -1) from bundle.raw.network_states as states
            where states.network = $network
        )
    );
