-- Supplies of tracked fungible tokens, each with the tenants without this reading: at the block before each new range,
-- and at the end of each range that ended. Also at the final block, for tokens that moved in their views in blocks that
-- became final.
with ranges as (
    select ranges.*
    from network_ranges as ranges
    inner join raw.token_metadata as metadata
        on metadata.network = $network and ranges.address = metadata.token_address
        and metadata.contract_status = 'Fungible'
    where ranges.kind = 'token'
),

pending as (
    select address, from_block - 1 as block_number, tenant_id
    from ranges
    where opened_to_block is null and from_block > 0
    union
    select address, to_block, tenant_id from ranges where is_ended
    union
    select ranges.address, $final, ranges.tenant_id
    from ranges
    where
        $final between ranges.from_block and ranges.to_block
        and exists (
            select 1 from raw.movements
            where
                movements.network = $network
                and movements.asset = ranges.address
                and movements.block_number between $final_from and $final
                and movements.block_number >= ranges.from_block
        )
)

select pending.address, pending.block_number, list(distinct pending.tenant_id order by pending.tenant_id)
from pending
left join raw.supply_observations as observations
    on observations.network = $network
    and pending.address = observations.token_address
    and pending.block_number = observations.block_number
where observations.visible_to[pending.tenant_id] is null
group by pending.address, pending.block_number;
