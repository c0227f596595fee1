-- The holders of a token at a block: what other queries read as `holders`. Those that have a balance in the covered
-- range with that block and are not zero.
with balances as (

    select
        holder_address,
        arg_max(balance_raw, block_number) filter (where range_from_block = $first_block) as quantity_raw,
        max(block_number) filter (where range_from_block = $first_block and is_moved) as moved_block,
        max(block_number) filter (where range_from_block = $first_block and is_observed) as checked_block_number,
        bool_or(is_adjusted) as is_adjusted,
        any_value(opened_by) filter (where range_from_block = $first_block) as opened_by
    from marts.balance_changes
    where
        subject_key = $subject_key
        and tenant_id = $tenant_id
        and block_number <= $block_number
    group by holder_address

)

select
    holder_address,
    quantity_raw,
    case
        when is_adjusted then 'Adjusted'
        when checked_block_number >= coalesce(moved_block, 0) then 'Reconciled'
        else 'Unchecked'
    end as reconciliation,
    checked_block_number,
    opened_by
from balances
where quantity_raw <> 0::bignum
