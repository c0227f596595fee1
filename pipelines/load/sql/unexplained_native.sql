-- Between two readings of a wallet's native balance that differ and are more than a block apart, where its transactions
-- were not asked for: one of them is new.
with balance_only as (
    select subjects.address, ranges.from_block, ranges.to_block
    from raw.view_ranges as ranges
    inner join raw.control_subjects as subjects on ranges.subject_key = subjects.subject_key
    where subjects.network = $network and ranges.native = 'balance-only'
),

readings as (
    select
        observations.holder_address,
        observations.block_number,
        arg_max(observations.quantity_raw, observations.batch_id) as quantity_raw,
        max(observations.batch_id) as batch_id
    from raw.balance_observations as observations
    where
        observations.network = $network
        and observations.token_address = 'native'
        and observations.quantity_raw is not null
        and observations.holder_address in (select address from balance_only)
    group by observations.holder_address, observations.block_number
),

steps as (
    select
        holder_address,
        block_number,
        quantity_raw,
        batch_id,
        lag(block_number) over (partition by holder_address order by block_number) as previous_block,
        lag(quantity_raw) over (partition by holder_address order by block_number) as previous_raw,
        lag(batch_id) over (partition by holder_address order by block_number) as previous_batch
    from readings
)

select steps.holder_address, steps.previous_block, steps.block_number, steps.previous_raw::varchar, steps.quantity_raw::varchar
from steps
where
    steps.block_number - steps.previous_block > 1
    and steps.quantity_raw != steps.previous_raw
    and greatest(steps.batch_id, steps.previous_batch) > $batch
    and exists (
        select 1 from balance_only
        where
            balance_only.address = steps.holder_address
            and balance_only.from_block <= steps.block_number
            and coalesce(balance_only.to_block, steps.block_number) > steps.previous_block
    )
order by steps.holder_address, steps.block_number;
