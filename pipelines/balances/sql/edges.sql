-- First and last blocks of views, covered ranges and the gaps between them, up to the head.
with edges as (
    select unnest([0, 1, $head]) as block_number
    union
    select unnest([from_block - 1, from_block, to_block, to_block + 1]) from network_ranges
    union
    select unnest([from_block - 1, from_block, to_block, to_block + 1]) from raw.view_ranges where network = $network
)

select block_number
from edges
where block_number between 0 and $head;
