-- Wallets with rows up to a block, each with the first block of these and the balance that follows from the last reading
-- and the movements since. It is null without a reading.
with ranges as (
    select wanted.address, max(coverage.from_block) as from_block
    from wanted
    inner join raw.coverage as coverage on wanted.address = coverage.address
    where
        coverage.network = $network
        and coverage.subject_kind = 'native'
        and $block between coverage.from_block and coverage.to_block
    group by wanted.address
),

readings as (
    select
        ranges.address,
        max(observations.block_number) as block_number,
        arg_max(observations.quantity_raw::varchar::hugeint, observations.block_number) as quantity_raw
    from ranges
    inner join raw.balance_observations as observations
        on
            observations.network = $network
            and observations.token_address = 'native'
            and ranges.address = observations.holder_address
            and observations.block_number between ranges.from_block - 1 and $block
    group by ranges.address
)

select
    ranges.address,
    ranges.from_block,
    (
        any_value(readings.quantity_raw)
        + coalesce(sum((moved.received_raw - moved.spent_raw)::varchar::hugeint), 0)
    )::varchar as quantity_raw
from ranges
left join readings on ranges.address = readings.address
left join raw.utxo_transactions as moved
    on
        moved.network = $network
        and readings.address = moved.address
        and moved.block_number > readings.block_number
        and moved.block_number <= $block
group by ranges.address, ranges.from_block
