-- Wallets whose view reaches the head, with the native balance last read; null where none was, or where
-- something may have moved it since.
with known as (
    select
        observations.holder_address,
        arg_max(observations.quantity_raw::varchar, observations.block_number) as quantity,
        max(observations.block_number) as block_number
    from raw.balance_observations as observations
    where observations.network = $network and observations.token_address = 'native'
    group by observations.holder_address
)

select
    ranges.address,
    any_value(known.quantity)
from network_ranges as ranges
left join known
    on ranges.address = known.holder_address
    and not exists (
        select 1 from raw.movement_sides as sides
        where
            sides.network = $network
            and sides.asset = 'native'
            and sides.holder_address = known.holder_address
            and sides.block_number > known.block_number
    )
where ranges.kind = 'wallet' and ranges.to_block >= $head
group by ranges.address;
