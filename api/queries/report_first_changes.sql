-- Of some holders, the first change of their balance after a block of a covered range: what it was before.
with wanted as (

    select unnest($holders::varchar[]) as holder_address

),

changes as (

    select
        holder_address,
        block_number,
        balance_raw - movement_raw as before_raw,
        is_first,
        is_adjusted
    from marts.balance_changes
    semi join wanted using (holder_address)
    where
        subject_key = $subject_key
        and tenant_id = $tenant_id
        and range_from_block = $first_block
        and block_number > $after_block
        and block_number <= $last_block

)

select
    holder_address,
    arg_min(before_raw, block_number)::varchar as before_raw,
    arg_min(is_first, block_number) as is_first,
    arg_min(is_adjusted, block_number) as is_adjusted
from changes
group by holder_address
