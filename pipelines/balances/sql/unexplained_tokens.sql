-- Tokens with a tenant's reading that differs from the previous one by more than the transfers in its views. If only
-- holders that moved differ, a late transfer may explain it; all holders are then suspected only if they are few.
with own_readings as (
    select token_address, holder_address, quantity_raw, unnest(tenant_ids) as tenant_id
    from readings
    where token_address != 'native' and quantity_raw is not null
),

previous as (
    select
        own_readings.tenant_id,
        observations.token_address,
        observations.holder_address,
        arg_max(observations.quantity_raw, observations.block_number) as quantity_raw,
        max(observations.block_number) as block_number
    from raw.balance_observations as observations
    inner join own_readings
        on observations.token_address = own_readings.token_address
        and observations.holder_address = own_readings.holder_address
    where
        observations.network = $network
        and observations.block_number < $head
        and observations.quantity_raw is not null
        and observations.visible_to[own_readings.tenant_id] is not null
    group by own_readings.tenant_id, observations.token_address, observations.holder_address
),

-- Two scans that each skip earlier rows. One scan with an `or` would skip none.
new_legs as (
    select asset as token_address, holder_address, block_number, movement_raw
    from raw.movement_sides
    where network = $network and asset != 'native' and not is_failed and block_number >= $from_block
    union all
    select asset, holder_address, block_number, movement_raw
    from raw.movement_sides
    where
        network = $network and asset != 'native' and not is_failed and batch_id > $batch and block_number < $from_block
),

moved as (
    select
        previous.tenant_id,
        previous.token_address,
        previous.holder_address,
        sum(new_legs.movement_raw) as movement_raw
    from new_legs
    inner join previous
        on new_legs.token_address = previous.token_address
        and new_legs.holder_address = previous.holder_address
        and new_legs.block_number > previous.block_number
    where
        exists (
            select 1 from network_ranges as ranges
            where
                ranges.kind = 'token'
                and ranges.tenant_id = previous.tenant_id
                and ranges.address = new_legs.token_address
                and ranges.from_block <= new_legs.block_number
                and ranges.to_block >= new_legs.block_number
        )
        or exists (
            select 1 from network_ranges as ranges
            where
                ranges.kind = 'wallet'
                and ranges.tenant_id = previous.tenant_id
                and ranges.address = new_legs.holder_address
                and ranges.from_block <= new_legs.block_number
                and ranges.to_block >= new_legs.block_number
        )
    group by previous.tenant_id, previous.token_address, previous.holder_address
),

wrong as (
    select own_readings.tenant_id, own_readings.token_address, bool_or(moved.tenant_id is null) as is_resting
    from own_readings
    inner join previous
        on own_readings.tenant_id = previous.tenant_id
        and own_readings.token_address = previous.token_address
        and own_readings.holder_address = previous.holder_address
    left join moved
        on own_readings.tenant_id = moved.tenant_id
        and own_readings.token_address = moved.token_address
        and own_readings.holder_address = moved.holder_address
    where own_readings.quantity_raw::bignum != previous.quantity_raw + coalesce(moved.movement_raw, 0::bignum)
    group by own_readings.tenant_id, own_readings.token_address
)

select wrong.token_address, wrong.tenant_id
from wrong
where
    wrong.is_resting
    or (
        select count(distinct observations.holder_address)
        from raw.balance_observations as observations
        where
            observations.network = $network
            and observations.token_address = wrong.token_address
            and observations.visible_to[wrong.tenant_id] is not null
    ) <= $few;
