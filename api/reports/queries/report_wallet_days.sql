-- Activities of a wallet by day, kind and direction, with the sum of their values in units of 10^-18. Failed activities
-- moved nothing, so they have no value and need none. Activities with an unknown amount count as moved.
with activities as (

    {% include '_valued_movements.sql' %}

)

select
    date_trunc('day', block_time) as day,
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
