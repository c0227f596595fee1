-- Holders with different balances at two moments, each in its own covered range. Every row also has the totals of both
-- cap tables and the number of matches. An empty page has one row with these alone (position null). A balance is null
-- if it is unknown.
with counted as (

    select
        count(*) filter (where before_raw <> 0::bignum) as holders_before,
        count(*) filter (where after_raw <> 0::bignum) as holders_after,
        count(*) filter (where change = 'New') as new_count,
        count(*) filter (where change = 'Gone') as gone_count,
        count(*) filter (where change = 'Changed') as changed_count
    from balances_at_both

),

matching as (

    select
        *,
        $direction * case when $is_by_wallet then address_rank else size_rank end as position
    from balances_at_both
    where
        change is not null
        and ($change is null or change = $change)
        and ($search is null or contains(holder_address, $search) or holder_address = any($named))

),

matching_counted as (

    select count(*) as matching_count
    from matching

),

paged as (

    select *
    from matching
    where position > $after_position
    order by position
    limit $row_count offset $skipped

)

select
    counted.holders_before,
    counted.holders_after,
    counted.new_count,
    counted.gone_count,
    counted.changed_count,
    matching_counted.matching_count,
    paged.position,
    paged.holder_address,
    paged.change,
    paged.before_raw::varchar as before_raw,
    paged.after_raw::varchar as after_raw,
    (paged.after_raw - paged.before_raw)::varchar as difference_raw,
    marts.percentage(paged.before_raw, $supply_before_raw::bignum) as percentage_before,
    marts.percentage(paged.after_raw, $supply_after_raw::bignum) as percentage_after
from counted
cross join matching_counted
left join paged on true
order by paged.position
