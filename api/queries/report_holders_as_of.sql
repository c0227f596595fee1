-- Holders at a block that match, in an order; balances as in `balances_as_of`.
with balances as (

    select
        holder_address,
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
    group by holder_address

),

holders as (

    select
        *,
        row_number() over (order by balance_raw desc, holder_address) as rank,
        case
            when is_adjusted then 'Adjusted'
            when checked_block >= coalesce(moved_block, 0) then 'Reconciled'
            else 'Unchecked'
        end as reconciliation
    from balances
    where balance_raw <> 0::bignum

),

matching as (

    select
        *,
        $direction * row_number() over (
            order by
                case $sort when 'wallet' then holder_address when 'reconciliation' then reconciliation else '' end,
                rank
        ) as position
    from holders
    where
        ($search is null or contains(holder_address, $search) or holder_address = any($named))
        and ($reconciliation is null or reconciliation = $reconciliation)

),

paged as (

    select *
    from matching
    where position > $after_position
    order by position
    limit $row_count offset $skipped

)

select
    position,
    rank,
    holder_address,
    balance_raw::varchar as quantity_raw,
    balance as quantity,
    marts.percentage(balance_raw, nullif($total_supply_raw, '0')::bignum) as percentage,
    reconciliation,
    checked_block as checked_block_number,
    opened_by
from paged
order by position
