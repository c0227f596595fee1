{%- set trace = 'coalesce(trace_index, -1), ' if kind == 'wallet' -%}
select
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
    {{- ',\n    amount_status' if kind == 'wallet' }}
from marts.{{ kind }}_activities
where
    {% include '_activity_filters.sql' %}
    and (block_number, transaction_index, log_index, {{ trace }}activity_id)
    {{ behind }} ($after_block, $after_transaction, $after_log, {{ '$after_trace, ' if trace }}$after_id)
order by
    block_number{{ order }},
    transaction_index{{ order }},
    log_index{{ order }},
    {% if trace -%}
    coalesce(trace_index, -1){{ order }},
    {% endif -%}
    activity_id{{ order }}
limit $row_count
