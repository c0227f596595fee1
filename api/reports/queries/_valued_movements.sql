select
    activities.block_time,
    activities.activity_type,
    activities.direction,
    activities.token_address,
    activities.token_symbol,
    activities.token_id,
    places.is_folded,
    activities.status <> 'Failed' and activities.amount_raw is distinct from 0::bignum as has_moved,
    activity_values.pair_key,
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
