-- Supplies of tracked fungible tokens at the block before each new range, at the end of each range that ended, and, where
-- tokens moved in blocks that became final, at the final block.
with ranges as (
    select ranges.*
    from network_ranges as ranges
    inner join raw.token_metadata as metadata
        on metadata.network = $network and ranges.address = metadata.token_address
        and metadata.contract_status = 'Fungible'
    where ranges.kind = 'token'
),

owed as (
    select address, from_block - 1 as block_number from ranges where opened_to_block is null and from_block > 0
    union
    select address, to_block from ranges where is_ended
    union
    select ranges.address, $final
    from ranges
    where
        $final between ranges.from_block and ranges.to_block
        and exists (
            select 1 from raw.movements
            where
                movements.network = $network
                and movements.asset = ranges.address
                and movements.block_number between $final_from and $final
        )
)

select owed.address, owed.block_number
from owed
anti join raw.supply_observations as observations
    on observations.network = $network
    and owed.address = observations.token_address
    and owed.block_number = observations.block_number;
