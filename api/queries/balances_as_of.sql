-- The last balance of each pair of asset and holder at or before a block, of those pairs of the subject that have one
-- in the covered range with that block and are not zero. A token has one asset, a wallet is one holder.
with balances as (

    select
        token_address,
        holder_address,
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
    group by token_address, holder_address

),

ranked as (

    select
        *,
        row_number() over (order by balance_raw desc, token_address, holder_address) as rank,
        row_number() over (order by token_address, holder_address) as place
    from balances
    where balance_raw <> 0::bignum

),

positions as (

    select
        *,
        $direction * case when $is_by_address then place else rank end as position
    from ranked

),

paged as (

    select *
    from positions
    where position > $after_position
    order by position
    limit $row_count

)

select
    position,
    rank,
    token_address,
    token_symbol,
    holder_address,
    balance_raw::varchar as quantity_raw,
    balance as quantity,
    marts.percentage(balance_raw, nullif($total_supply_raw, '0')::bignum) as percentage,
    case
        when is_adjusted then 'Adjusted'
        when checked_block >= coalesce(moved_block, 0) then 'Reconciled'
        else 'Unchecked'
    end as reconciliation,
    checked_block as checked_block_number,
    opened_by
from paged
order by position
