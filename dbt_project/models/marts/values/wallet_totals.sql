select
    null::varchar as tenant_id,
    null::bigint as subject_key,
    null::timestamp as as_of_time,
    null::varchar as total_value,
    null::double as total_value_approx,
    null::varchar as total_value_status,
    null::boolean as value_complete,
    null::varchar[] as unpriced,
    null::varchar as total_value_24h,
    null::varchar as change24h,
    null::varchar as change24h_status,
    null::varchar as currency
where false
