-- Holders whose balance differs between two moments, each in its own covered range. The totals of both cap tables stand
-- beside every row, and alone (position null) when the page is empty. A balance that is not known is null.
with counted as (

    select
        count(*) filter (where before_raw <> 0::bignum) as holders_before,
        count(*) filter (where after_raw <> 0::bignum) as holders_after
    from balances_at_both

),

supplies as (

    select
        arg_max(total_supply_raw, block_number) filter (
            where range_from_block = $before_first_block and block_number <= $before_block
        ) as supply_before_raw,
        arg_max(total_supply_raw, block_number) filter (where range_from_block = $after_first_block) as supply_after_raw
    from marts.supply_changes
    where
        subject_key = $subject_key
        and tenant_id = $tenant_id
        and range_from_block in ($before_first_block, $after_first_block)
        and block_number <= $after_block

),

differences as (

    select
        holder_address,
        before_raw,
        after_raw,
        coalesce(after_raw, 0::bignum) - coalesce(before_raw, 0::bignum) as difference_raw,
        case
            when coalesce(before_raw, 0::bignum) = 0::bignum then 'New'
            when coalesce(after_raw, 0::bignum) = 0::bignum then 'Gone'
            else 'Changed'
        end as change
    from balances_at_both
    where coalesce(before_raw, 0::bignum) <> coalesce(after_raw, 0::bignum)

),

changes_counted as (

    select
        count(*) filter (where change = 'New') as new_count,
        count(*) filter (where change = 'Gone') as gone_count,
        count(*) filter (where change = 'Changed') as changed_count
    from differences

),

sized as (

    select
        *,
        case when difference_raw < 0::bignum then 0::bignum - difference_raw else difference_raw end as size_raw
    from differences
    where $change is null or change = $change

),

ranked as (

    select
        *,
        row_number() over (order by size_raw desc, holder_address) as rank,
        row_number() over (order by holder_address) as place
    from sized

),

positions as (

    select
        *,
        $direction * case when $is_by_wallet then place else rank end as position
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
    counted.holders_before,
    counted.holders_after,
    changes_counted.new_count,
    changes_counted.gone_count,
    changes_counted.changed_count,
    supplies.supply_before_raw::varchar as supply_before_raw,
    supplies.supply_after_raw::varchar as supply_after_raw,
    paged.position,
    paged.holder_address,
    paged.change,
    paged.before_raw::varchar as before_raw,
    paged.after_raw::varchar as after_raw,
    (paged.after_raw - paged.before_raw)::varchar as difference_raw
from counted
cross join changes_counted
cross join supplies
left join paged on true
order by paged.position
