select
    null::varchar as tenant_id,
    null::bigint as subject_key,
    null::varchar as activity_id,
    null::bigint as block_number,
    null::timestamp as block_time,
    null::integer as transaction_index,
    null::varchar as token_address,
    null::bigint as pair_key,
    null::decimal(38,18) as price,
    null::varchar as price_text,
    null::timestamp as price_effective_from,
    null::varchar as source_id,
    null::boolean as is_fallback,
    null::varchar as value,
    null::double as value_approx,
    null::varchar as value_status
where false
