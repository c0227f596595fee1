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
    select
        transfers.token_address,
        sum(
            case
                when transfers.from_address = transfers.to_address then 0::bignum
                when transfers.from_address = '0x0000000000000000000000000000000000000000' then transfers.amount_raw
                else 0::bignum - transfers.amount_raw
            end
        ) as movement_raw
    from raw.token_transfers as transfers
    inner join known on transfers.token_address = known.token_address and transfers.block_number > known.block_number
    where
        transfers.network = $network
        and '0x0000000000000000000000000000000000000000' in (transfers.from_address, transfers.to_address)
    group by transfers.token_address
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
