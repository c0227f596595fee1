subject_key = $subject_key
    and tenant_id = $tenant_id
    and block_number between $first_block and $last_block
    and block_time >= $from_time
    and block_time < $to_time
    and ($activity_type::varchar is null or activity_type = $activity_type)
    {% if kind == 'token' -%}
    and ($status::varchar is null or status = $status)
    and ($wallet::varchar is null or from_address = $wallet or to_address = $wallet)
    and ($minimum_raw::varchar is null or {{ kind }}_activities.amount_raw >= $minimum_raw::bignum)
    {%- else -%}
    and ($direction::varchar is null or direction = $direction)
    and ($token_address::varchar is null or token_address = $token_address)
    and (
        $counterparty::varchar is null
        or counterparty_address = $counterparty
        or list_contains(counterparties, $counterparty)
    )
    {%- endif %}
