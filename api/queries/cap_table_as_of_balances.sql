-- All balances at a block that are not zero, largest first: what the head of a past cap table is made from.
with balances as (

    select arg_max(balance_raw, block_number) as balance_raw
    from marts.balance_changes
    where
        subject_key = $subject_key
        and tenant_id = $tenant_id
        and range_from_block = $first_block
        and block_number <= $block_number
    group by holder_address

)

select balance_raw::varchar as balance_raw
from balances
where balances.balance_raw <> 0::bignum
order by balances.balance_raw desc
