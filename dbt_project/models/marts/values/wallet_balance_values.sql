select
    null::varchar as tenant_id,
    null::bigint as subject_key,
    null::varchar as token_address,
    null::varchar as token_id,
    null::varchar as token_symbol,
    null::integer as token_decimals,
    null::bignum as quantity_raw,
    null::varchar as quantity,
    null::double as quantity_approx,
    null::varchar as reconciliation,
    null::bigint as checked_block_number,
    null::bigint as pair_key,
    null::varchar as price_text,
    null::varchar as value,
    null::double as value_approx,
    null::varchar as value_status,
    null::varchar as currency
where false
