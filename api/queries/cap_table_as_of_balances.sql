-- All balances at a block that are not zero, largest first: what the head of a past cap table is made from.
with balances as (

    select
        holder_address,
        balance_raw
    from marts.balance_changes
    where
        subject_key = $subject_key
        and tenant_id = $tenant_id
        and block_number between $first_block - 1 and $block_number
    qualify row_number() over (partition by holder_address order by block_number desc, window_key desc) = 1

)

select balance_raw::varchar as balance_raw
from balances
where balance_raw <> 0::bignum and holder_address <> '0x0000000000000000000000000000000000000000'
order by balances.balance_raw desc
