subject_key = $subject_key
    and tenant_id = $tenant_id
    and block_number between $first_block and $last_block
    and block_time >= $from_time
    and block_time < $to_time
    and ($activity_type is null or activity_type = $activity_type)
    {% if kind == 'token' -%}
    and ($status is null or status = $status)
    and ($wallet is null or from_address = $wallet or to_address = $wallet)
    and ($minimum_raw is null or {{ kind }}_activities.amount_raw >= $minimum_raw::bignum)
    {%- else -%}
    and ($direction is null or direction = $direction)
    and ($token_address is null or token_address = $token_address)
    and (
        $counterparty is null
        or counterparty_address = $counterparty
        or list_contains(counterparties, $counterparty)
    )
    {%- endif %}
