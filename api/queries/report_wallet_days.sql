-- Activities of a wallet by day, kind and direction, with the sum of their values in units of 10^-18. What failed moved
-- nothing, so it has no value; what moved nothing needs none. An amount that is not known did move.
with moved as (

    -- Transactions with more than their fee.
    select transaction_hash
    from marts.wallet_activities
    where
        subject_key = $subject_key
        and tenant_id = $tenant_id
        and block_time >= $from_time
        and block_time < $to_time
        and activity_type <> 'Fee'
        and transaction_hash is not null

),

activities as (

    select
        activity_id,
        date_trunc('day', block_time) as day,
        block_time,
        activity_type,
        direction,
        activity_type = 'Fee' and transaction_hash in (select moved.transaction_hash from moved) as is_folded,
        status <> 'Failed' and amount_raw is distinct from 0::bignum as has_moved,
        case
            when amount_raw is null then 'UnknownAmount'
            when amount is null then 'UnknownDecimals'
            else 'NoPair'
        end as status_without_pair
    from marts.wallet_activities
    where
        subject_key = $subject_key
        and tenant_id = $tenant_id
        and block_time >= $from_time
        and block_time < $to_time

),

activity_values as (

    select
        activity_id,
        value,
        value_status
    from marts.wallet_activity_values
    where subject_key = $subject_key and tenant_id = $tenant_id

)

select
    activities.day,
    activities.activity_type,
    activities.direction,
    count(*) as activity_count,
    count(*) filter (where activities.is_folded) as folded_count,
    count(*) filter (where activities.has_moved and activity_values.value is not null) as valued_count,
    (
        sum(
            (
                split_part(activity_values.value, '.', 1)
                || rpad(split_part(activity_values.value, '.', 2), 18, '0')
            )::bignum
        ) filter (where activities.has_moved and activity_values.value is not null)
    )::varchar as value_units,
    coalesce(
        list_sort(
            list(distinct coalesce(activity_values.value_status, activities.status_without_pair))
            filter (where activities.has_moved and activity_values.value is null)
        ),
        []
    ) as statuses_without_value
from activities
left join activity_values on activities.activity_id = activity_values.activity_id
group by activities.day, activities.activity_type, activities.direction
order by activities.day, activities.activity_type, activities.direction
