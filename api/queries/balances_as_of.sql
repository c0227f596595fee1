-- The last balance of each asset of a wallet at or before a block, of those that have one in the covered range with that
-- block and are not zero.
with balances as (

    select
        token_address,
        any_value(token_symbol) as token_symbol,
        arg_max(balance_raw, block_number) filter (where range_from_block = $first_block) as balance_raw,
        arg_max(balance, block_number) filter (where range_from_block = $first_block) as balance,
        max(block_number) filter (where range_from_block = $first_block and is_moved) as moved_block,
        max(block_number) filter (where range_from_block = $first_block and is_observed) as checked_block,
        bool_or(is_adjusted) as is_adjusted,
        any_value(opened_by) filter (where range_from_block = $first_block) as opened_by
    from marts.balance_changes
    where
        subject_key = $subject_key
        and tenant_id = $tenant_id
        and block_number <= $block_number
    group by token_address

)

select
    token_address,
    token_symbol,
    balance_raw::varchar as quantity_raw,
    balance as quantity,
    case
        when is_adjusted then 'Adjusted'
        when checked_block >= coalesce(moved_block, 0) then 'Reconciled'
        else 'Unchecked'
    end as reconciliation,
    checked_block as checked_block_number,
    opened_by
from balances
where balance_raw <> 0::bignum
order by token_address
