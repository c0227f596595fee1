-- True if slow native balances are due. Either a wallet with a view up to the head has no reading, or the newest reading
-- of the network is a day old.
with tracked as (
    select distinct tenant_id, address
    from network_ranges
    where kind = 'wallet' and to_block >= $head
),

known as (
    select tracked.tenant_id, tracked.address, max(observations.block_number) as block_number
    from tracked
    left join raw.balance_observations as observations
        on
            observations.network = $network
            and observations.token_address = 'native'
            and tracked.address = observations.holder_address
            and observations.visible_to[tracked.tenant_id] is not null
    group by tracked.tenant_id, tracked.address
)

select count(*) > count(known.block_number) or max(blocks.block_time) <= $day_ago
from known
left join raw.blocks as blocks on blocks.network = $network and known.block_number = blocks.block_number
having count(*) > 0;
