-- As `report_holder_groups`, at a block; balances as in `balances_as_of`.
with balances as (

    select
        holder_address,
        arg_max(balance_raw, block_number) filter (where range_from_block = $first_block) as balance_raw,
        max(block_number) filter (where range_from_block = $first_block and is_moved) as moved_block,
        max(block_number) filter (where range_from_block = $first_block and is_observed) as checked_block,
        bool_or(is_adjusted) as is_adjusted
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

)

select
    reconciliation,
    floor(ln(rank) * $groups_per_log)::integer as place,
    count(*) as holder_count,
    max(rank) as last_rank,
    sum(balance_raw)::varchar as quantity_raw
from holders
group by reconciliation, place
order by place
