-- Activities of a wallet by day, kind and direction, with the sum of their values in units of 10^-18. What failed moved
-- nothing, so it has no value; what moved nothing needs none. An amount that is not known did move.
with activities as (

    select
        date_trunc('day', activities.block_time) as day,
        activities.activity_type,
        activities.direction,
        places.is_folded,
        activities.status <> 'Failed' and activities.amount_raw is distinct from 0::bignum as has_moved,
        activity_values.value,
        coalesce(
            activity_values.value_status,
            case
                when activities.amount_raw is null then 'UnknownAmount'
                when activities.amount is null then 'UnknownDecimals'
                else places.status_without_value
            end
        ) as value_status
    from places
    inner join marts.wallet_activities as activities on places.place = activities.rowid
    left join marts.wallet_activity_values as activity_values on places.value_place = activity_values.rowid
    where activities.block_time >= $from_time and activities.block_time < $to_time

)

select
    day,
    activity_type,
    direction,
    count(*) as activity_count,
    count(*) filter (where is_folded) as folded_count,
    count(*) filter (where has_moved and value is not null) as valued_count,
    (
        sum((split_part(value, '.', 1) || rpad(split_part(value, '.', 2), 18, '0'))::bignum)
        filter (where has_moved and value is not null)
    )::varchar as value_units,
    coalesce(list_sort(list(distinct value_status) filter (where has_moved and value is null)), [])
        as statuses_without_value
from activities
group by day, activity_type, direction
order by day, activity_type, direction
