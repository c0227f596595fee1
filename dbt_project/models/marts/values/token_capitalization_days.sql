select
    null::varchar as tenant_id,
    null::bigint as subject_key,
    null::bigint as range_from_block,
    null::date as day,
    null::bigint as pair_key,
    null::bignum as supply_raw,
    null::varchar as supply,
    null::decimal(38,18) as price,
    null::varchar as price_text,
    null::varchar as price_status,
    null::timestamp as price_effective_from,
    null::varchar as source_id,
    null::boolean as is_fallback,
    null::varchar as value,
    null::double as value_approx,
    null::varchar as value_status
where false
