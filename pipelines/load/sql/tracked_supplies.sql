-- Tracked fungible tokens whose view reaches the head: the supply last read, null where none was, and what minting and
-- burning since then make of it.
with known as (
    select
        observations.token_address,
        arg_max(observations.total_supply_raw, observations.block_number) as supply_raw,
        max(observations.block_number) as block_number
    from raw.supply_observations as observations
    where
        observations.network = $network
        and observations.total_supply_raw is not null
    group by observations.token_address
),

moved as (
    select sides.asset as token_address, sum(sides.movement_raw) as movement_raw
    from raw.movement_sides as sides
    inner join known on sides.asset = known.token_address and sides.block_number > known.block_number
    where sides.network = $network and sides.kind in ('Mint', 'Burn') and not sides.is_failed
    group by sides.asset
)

select distinct
    ranges.address,
    if(moved.token_address is null, known.supply_raw::varchar, null),
    (known.supply_raw + coalesce(moved.movement_raw, 0::bignum))::varchar
from network_ranges as ranges
inner join raw.token_metadata as metadata
    on metadata.network = $network and ranges.address = metadata.token_address
    and metadata.contract_status = 'Fungible'
left join known on ranges.address = known.token_address
left join moved on ranges.address = moved.token_address
where ranges.kind = 'token' and ranges.to_block >= $head;
