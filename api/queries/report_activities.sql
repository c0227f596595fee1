-- Activities of a wallet that match, from one end of the keys on, equal keys in the order of the chain or against it, with
-- their values.
-- Quantities and values are compared as text of one length before the point, so exactly.
with {% include '_report_activity_values.sql' %},

keys as (

    select
        activity_id,
        value
    from activity_values
    where $sort = 'value'

),

{% include '_report_moved.sql' %},

matching as (

    select
        rowid as place,
        activity_id,
        block_number,
        transaction_index,
        log_index,
        coalesce(trace_index, -1) as trace_place,
        activity_type,
        counterparty_address,
        token_symbol,
        token_address,
        amount,
        amount_raw
    from marts.wallet_activities
    where
        {% include '_report_activity_filters.sql' %}

),

sorted as (

    select
        matching.place,
        matching.block_number,
        matching.transaction_index,
        matching.log_index,
        matching.trace_place,
        matching.activity_id,
        coalesce(
            case $sort
                when 'type' then matching.activity_type
                when 'token' then lower(coalesce(matching.token_symbol, matching.token_address))
                when 'counterparty' then matching.counterparty_address
                when 'quantity'
                    then
                        lpad(split_part(coalesce(matching.amount, matching.amount_raw::varchar), '.', 1), 120, '0')
                        || '.' || split_part(coalesce(matching.amount, matching.amount_raw::varchar), '.', 2)
                when 'value' then lpad(split_part(keys.value, '.', 1), 120, '0') || '.' || split_part(keys.value, '.', 2)
                else ''
            end,
            $key_of_null
        ) as sort_key
    from matching
    left join keys on matching.activity_id = keys.activity_id

),

paged as (

    select
        place,
        sort_key
    from sorted
    where
        $after_id is null
        or (sort_key, block_number, transaction_index, log_index, trace_place, activity_id)
        {{ behind }} ($after_key, $after_block, $after_transaction, $after_log, $after_trace, $after_id)
    order by
        sort_key{{ order }},
        block_number{{ order }},
        transaction_index{{ order }},
        log_index{{ order }},
        trace_place{{ order }},
        activity_id{{ order }}
    limit $row_count offset $skipped

),

shown as (

    select
        activities.*,
        coalesce(activities.trace_index, -1) as trace_place,
        paged.sort_key
    from marts.wallet_activities as activities
    inner join paged on activities.rowid = paged.place
    where activities.rowid in (select place from paged)

)

select
    shown.activity_id,
    shown.activity_type,
    shown.direction,
    shown.status,
    shown.block_number,
    shown.block_time,
    shown.transaction_index,
    shown.log_index,
    shown.trace_index,
    shown.transaction_hash,
    shown.counterparty_address,
    shown.token_address,
    shown.token_id,
    shown.token_symbol,
    shown.amount_raw::varchar as amount_raw,
    shown.amount,
    shown.is_located,
    shown.amount_status,
    shown.sort_key,
    activity_values.pair_key,
    activity_values.price,
    activity_values.value,
    activity_values.value_status
from shown
left join activity_values on shown.activity_id = activity_values.activity_id
order by
    shown.sort_key{{ order }},
    shown.block_number{{ order }},
    shown.transaction_index{{ order }},
    shown.log_index{{ order }},
    shown.trace_place{{ order }},
    shown.activity_id{{ order }}
