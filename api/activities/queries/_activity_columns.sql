    activity_id,
    activity_type,
    {% if kind == 'wallet' -%}
    direction,
    {% endif -%}
    status,
    block_number,
    block_time,
    transaction_index,
    log_index,
    {% if kind == 'wallet' -%}
    trace_index,
    {% endif -%}
    transaction_hash,
    {% if kind == 'token' -%}
    from_address,
    to_address,
    {%- else -%}
    counterparty_address,
    token_address,
    token_id,
    token_symbol,
    {%- endif %}
    amount_raw::varchar as amount_raw,
    amount,
    is_located
    {%- if kind == 'wallet' %},
    amount_status,
    fee_raw::varchar as fee_raw,
    fee,
    fee_status,
    counterparties,
    counterparty_count,
    counterparty_status
    {%- endif %}
