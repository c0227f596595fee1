-- Tracked fungible tokens with a view that reaches the head, by tenant. The first supply is the last one read for it;
-- it is null without a reading, or after mints and burns. The second one adds mints and burns in its view since.
with tracked as (
    select distinct ranges.tenant_id, ranges.address
    from network_ranges as ranges
    inner join raw.token_metadata as metadata
        on metadata.network = $network and ranges.address = metadata.token_address
        and metadata.contract_status = 'Fungible'
    where ranges.kind = 'token' and ranges.to_block >= $head
),

known as (
    select
        tracked.tenant_id,
        tracked.address,
        arg_max(observations.total_supply_raw, observations.block_number) as supply_raw,
        max(observations.block_number) as block_number
    from raw.supply_observations as observations
    inner join tracked on observations.token_address = tracked.address
    where
        observations.network = $network
        and observations.total_supply_raw is not null
        and observations.visible_to[tracked.tenant_id] is not null
    group by tracked.tenant_id, tracked.address
),

moved as (
    select known.tenant_id, known.address, sum(sides.movement_raw) as movement_raw
    from raw.movement_sides as sides
    inner join known on sides.asset = known.address and sides.block_number > known.block_number
    semi join network_ranges as ranges
        on known.tenant_id = ranges.tenant_id
        and known.address = ranges.address
        and ranges.kind = 'token'
        and sides.block_number >= ranges.from_block
        and sides.block_number <= ranges.to_block
    where sides.network = $network and sides.kind in ('Mint', 'Burn') and not sides.is_failed
    group by known.tenant_id, known.address
)

select
    tracked.address,
    tracked.tenant_id,
    if(moved.address is null, known.supply_raw::varchar, null),
    (known.supply_raw + coalesce(moved.movement_raw, 0::bignum))::varchar
from tracked
left join known on tracked.tenant_id = known.tenant_id and tracked.address = known.address
left join moved on tracked.tenant_id = moved.tenant_id and tracked.address = moved.address;
