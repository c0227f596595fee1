-- The last balance of each holder at or before a block, since the covered range with that block began.
with balances as (

    select
        holder_address,
        balance_raw,
        balance,
        is_observed
    from marts.balance_changes
    where
        subject_key = $subject_key
        and tenant_id = $tenant_id
        and block_number between $first_block - 1 and $block_number
    qualify row_number() over (partition by holder_address order by block_number desc, window_key desc) = 1

),

holders as (

    select
        holder_address,
        balance_raw,
        balance,
        is_observed,
        row_number() over (order by balance_raw desc, holder_address) as rank,
        row_number() over (order by holder_address) as place
    from balances
    where balance_raw <> 0::bignum and holder_address <> '0x0000000000000000000000000000000000000000'

),

positions as (

    select
        *,
        $direction * case when $is_by_wallet then place else rank end as position
    from holders

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
    holder_address,
    balance_raw::varchar as quantity_raw,
    balance as quantity,
    marts.percentage(balance_raw, nullif($total_supply_raw, '0')::bignum) as percentage,
    case when is_observed then 'Reconciled' else 'Unchecked' end as reconciliation
from paged
order by position
