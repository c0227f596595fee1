-- Wallets with a view that reaches the head, by tenant, with the last native balance read for it. The balance is null
-- without a reading, or if a movement in its view may have changed it since.
with tracked as (
    select distinct subject_key, tenant_id, address
    from network_ranges
    where kind = 'wallet' and to_block >= $head
),

known as (
    select
        tracked.subject_key,
        arg_max(observations.quantity_raw::varchar, observations.block_number) as quantity,
        max(observations.block_number) as block_number
    from raw.balance_observations as observations
    inner join tracked on observations.holder_address = tracked.address
    where
        observations.network = $network
        and observations.token_address = 'native'
        and observations.visible_to[tracked.tenant_id] is not null
    group by tracked.subject_key
),

moved as (
    select distinct known.subject_key
    from known
    inner join native_ranges as natives on known.subject_key = natives.subject_key
    inner join raw.movement_sides as sides
        on natives.address = sides.holder_address
        and sides.block_number between natives.from_block and natives.to_block
        and sides.block_number > known.block_number
    where sides.network = $network and sides.asset = 'native'
)

select
    tracked.address,
    tracked.tenant_id,
    if(count(moved.subject_key) > 0, null, any_value(known.quantity))
from tracked
left join known on tracked.subject_key = known.subject_key
left join moved on tracked.subject_key = moved.subject_key
group by tracked.address, tracked.tenant_id;
