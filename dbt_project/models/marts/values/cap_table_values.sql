select
    null::varchar as tenant_id,
    null::bigint as subject_key,
    null::bigint as rank,
    null::varchar as holder_address,
    null::bignum as quantity_raw,
    null::varchar as quantity,
    null::double as quantity_approx,
    null::varchar as percentage,
    null::double as percentage_approx,
    null::varchar as reconciliation,
    null::bigint as checked_block_number,
    null::bigint as pair_key,
    null::varchar as price_text,
    null::varchar as value,
    null::double as value_approx,
    null::varchar as value_status,
    null::varchar as currency
where false
