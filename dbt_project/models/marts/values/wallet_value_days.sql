select
    null::varchar as tenant_id,
    null::bigint as subject_key,
    null::bigint as range_from_block,
    null::date as day,
    null::varchar as value,
    null::double as value_approx,
    null::varchar as value_status,
    null::boolean as value_complete,
    null::varchar[] as unpriced,
    null::boolean as holdings_complete
where false
