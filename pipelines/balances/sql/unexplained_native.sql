-- Pairs of readings of a wallet's native balance that differ, for a tenant, where its transactions are not collected.
-- They are more than a block apart, and one of them is new to the tenant.
with balance_only as (
    select subjects.tenant_id, subjects.address, ranges.from_block, ranges.to_block
    from raw.view_ranges as ranges
    inner join raw.control_subjects as subjects on ranges.subject_key = subjects.subject_key
    where subjects.network = $network and ranges.native = 'balance-only'
),

readings as (
    select
        wallets.tenant_id,
        observations.holder_address,
        observations.block_number,
        arg_max(observations.quantity_raw, observations.batch_id) as quantity_raw,
        max(observations.visible_to[wallets.tenant_id]) as batch_id
    from raw.balance_observations as observations
    inner join (select distinct tenant_id, address from balance_only) as wallets
        on observations.holder_address = wallets.address
    where
        observations.network = $network
        and observations.token_address = 'native'
        and observations.quantity_raw is not null
        and observations.visible_to[wallets.tenant_id] is not null
    group by wallets.tenant_id, observations.holder_address, observations.block_number
),

steps as (
    select
        tenant_id,
        holder_address,
        block_number,
        quantity_raw,
        batch_id,
        lag(block_number) over wallet as previous_block,
        lag(quantity_raw) over wallet as previous_raw,
        lag(batch_id) over wallet as previous_batch
    from readings
    window wallet as (partition by tenant_id, holder_address order by block_number)
)

select
    steps.holder_address,
    steps.previous_block,
    steps.block_number,
    steps.previous_raw::varchar,
    steps.quantity_raw::varchar,
    list(steps.tenant_id order by steps.tenant_id)
from steps
where
    steps.block_number - steps.previous_block > 1
    and steps.quantity_raw != steps.previous_raw
    and greatest(steps.batch_id, steps.previous_batch) > $batch
    and exists (
        select 1 from balance_only
        where
            balance_only.tenant_id = steps.tenant_id
            and balance_only.address = steps.holder_address
            and balance_only.from_block <= steps.block_number
            and coalesce(balance_only.to_block, steps.block_number) > steps.previous_block
    )
group by steps.holder_address, steps.previous_block, steps.block_number, steps.previous_raw, steps.quantity_raw
order by steps.holder_address, steps.block_number;
