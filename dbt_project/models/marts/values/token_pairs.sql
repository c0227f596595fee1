select
    null::varchar as tenant_id,
    null::bigint as subject_key,
    null::varchar as network,
    null::varchar as token_address,
    null::integer as token_decimals,
    null::bigint as pair_key,
    null::varchar as pair_id,
    null::varchar as priced_as,
    null::varchar as priced_in,
    null::varchar as origin
where false
