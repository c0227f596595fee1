-- Tokens of which a reading is not the one before it moved by the transfers since. A transfer that was due explains a
-- difference of the holders that moved, so that it casts doubt on the others only where they are few.
with previous as (
    select
        observations.token_address,
        observations.holder_address,
        arg_max(observations.quantity_raw, observations.block_number) as quantity_raw,
        max(observations.block_number) as block_number
    from raw.balance_observations as observations
    semi join readings
        on observations.token_address = readings.token_address
        and observations.holder_address = readings.holder_address
    where
        observations.network = $network
        and observations.block_number < $head
        and observations.quantity_raw is not null
    group by observations.token_address, observations.holder_address
),

-- Two scans that each skip what lies before, in the place of one with an `or`, which skips nothing.
legs as (
    select asset as token_address, holder_address, block_number, movement_raw
    from raw.movement_sides
    where network = $network and asset != 'native' and not is_failed and block_number >= $from_block
    union all
    select asset, holder_address, block_number, movement_raw
    from raw.movement_sides
    where
        network = $network and asset != 'native' and not is_failed and batch_id > $batch and block_number < $from_block
),

compared as (
    select
        readings.token_address,
        readings.holder_address,
        any_value(readings.quantity_raw::bignum) as read_raw,
        any_value(previous.quantity_raw) + coalesce(sum(legs.movement_raw), 0::bignum) as expected_raw,
        count(legs.movement_raw) > 0 as is_moved
    from readings
    inner join previous
        on readings.token_address = previous.token_address
        and readings.holder_address = previous.holder_address
    left join legs
        on readings.token_address = legs.token_address
        and readings.holder_address = legs.holder_address
        and previous.block_number < legs.block_number
    where readings.token_address != 'native' and readings.quantity_raw is not null
    group by readings.token_address, readings.holder_address
),

wrong as (
    select token_address, bool_or(not is_moved) as is_resting
    from compared
    where read_raw != expected_raw
    group by token_address
)

select wrong.token_address
from wrong
where
    wrong.is_resting
    or (
        select count(distinct observations.holder_address)
        from raw.balance_observations as observations
        where observations.network = $network and observations.token_address = wrong.token_address
    ) <= $few;
