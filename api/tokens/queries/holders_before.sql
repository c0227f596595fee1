-- Balances of holders at an earlier block, by rank, for holders with possible changes since; null if unknown. The first
-- change after that block gives the balance. If it is an adjustment by a reading, or if the block is in another covered
-- range, the last balance up to that block is used.
with changed as (

    select
        holder_address,
        arg_min(balance_raw, block_number) - arg_min(movement_raw, block_number) as before_raw,
        arg_min(is_first, block_number) as is_first,
        arg_min(is_adjusted, block_number) as is_adjusted
    from marts.balance_changes
    where
        subject_key = $subject_key
        and tenant_id = $tenant_id
        and range_from_block = $first_block
        and block_number > $then_block
        and block_number <= $block_number
        and $then_first_block = $first_block
    group by holder_address

),

looked_up as (

    select holder_address
    from changed
    where is_adjusted and not is_first

    union all

    select holder_address
    from holders
    where $then_first_block <> $first_block

),

balances as (

    select
        holder_address,
        arg_max(balance_raw, block_number) as balance_raw
    from marts.balance_changes
    semi join looked_up using (holder_address)
    where
        subject_key = $subject_key
        and tenant_id = $tenant_id
        and range_from_block = $then_first_block
        and block_number <= $then_block
    group by holder_address

),

known as (

    select
        holder_address,
        if(is_first, null, before_raw) as before_raw
    from changed
    where is_first or not is_adjusted

    union all

    select
        holder_address,
        balance_raw as before_raw
    from looked_up
    left join balances using (holder_address)

)

select
    holders.rank,
    known.before_raw::varchar as before_raw
from holders
inner join known on holders.holder_address = known.holder_address
order by holders.rank
