{%- set trace = 'coalesce(trace_index, -1), ' if kind == 'wallet' -%}
select
{% include '_activity_columns.sql' %}
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
