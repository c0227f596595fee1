-- Matching activities of a wallet in a sort order, then in the order of the chain or its reverse. Other queries read
-- the result as `ordered`. Quantities and values are compared exactly, as text padded to one length before the point.
with matching as (

    select
        activities.*,
        activities.rowid as place,
        places.value_place
    from places
    inner join marts.wallet_activities as activities on places.place = activities.rowid
    where
        activities.subject_key = $subject_key
        and activities.tenant_id = $tenant_id
        and activities.block_time >= $from_time
        and activities.block_time < $to_time
        and ($activity_type::varchar is null or activities.activity_type = $activity_type)
        and ($direction::varchar is null or activities.direction = $direction)
        and ($token_address::varchar is null or activities.token_address = $token_address)
        and (
            $search::varchar is null
            or contains(activities.transaction_hash, $search)
            or contains(lower(activities.counterparty_address), $search)
            or contains(lower(array_to_string(activities.counterparties, ' ')), $search)
            or activities.counterparty_address = any($named::varchar[])
            or list_has_any(activities.counterparties, $named::varchar[])
        )
        and not ($is_folded and places.is_folded)

),

sorted as (

    select
        matching.*,
        coalesce(
            case $sort
                when 'type' then matching.activity_type
                when 'token' then lower(coalesce(matching.token_symbol, matching.token_address))
                when 'counterparty' then matching.counterparty_address
                when 'quantity'
                    then
                        lpad(split_part(coalesce(matching.amount, matching.amount_raw::varchar), '.', 1), 120, '0')
                        || '.' || split_part(coalesce(matching.amount, matching.amount_raw::varchar), '.', 2)
                when 'value'
                    then
                        lpad(split_part(activity_values.value, '.', 1), 120, '0')
                        || '.' || split_part(activity_values.value, '.', 2)
                else ''
            end,
            $key_of_null
        ) as sort_key
    from matching
    left join marts.wallet_activity_values as activity_values on matching.value_place = activity_values.rowid

)

select
    row_number() over () as position,
    place,
    value_place
from (
    select
        place,
        value_place
    from sorted
    order by
        sort_key{{ order }},
        block_number{{ order }},
        transaction_index{{ order }},
        log_index{{ order }},
        coalesce(trace_index, -1){{ order }},
        activity_id{{ order }}
)
