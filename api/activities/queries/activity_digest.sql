{%- set trace = 'coalesce(trace_index, -1), ' if kind == 'wallet' -%}
-- Digest of the ids and quantities of the activities between two keys, both included. The id contains the hash and
-- position of the row. Status, value and token names are not part of the digest, since they may change.
select
    coalesce(
        bit_xor(
            md5_number(
                concat_ws('|', activity_id, {{ 'from_address is null' if kind == 'token' else 'direction' }}, amount_raw)
            )
        ),
        0
    ) as digest
from marts.{{ kind }}_activities
where
    {% include '_activity_filters.sql' %}
    and (
        block_number > $first_block
        or (transaction_index, log_index, {{ trace }}activity_id)
        >= ($first_transaction, $first_log, {{ '$first_trace, ' if trace }}$first_id)
    )
    and (
        block_number < $last_block
        or (transaction_index, log_index, {{ trace }}activity_id)
        <= ($last_transaction, $last_log, {{ '$last_trace, ' if trace }}$last_id)
    )
