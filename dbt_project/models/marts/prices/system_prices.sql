{{
    config(
        materialized='appended_table',
        pre_hook=[
            "{{ delete_removed_pairs() }}",
            "{{ delete_other_steps() }}",
        ],
    )
}}

-- depends_on: {{ ref('int_changed_price_spans') }}
with

steps as (

    select * from {{ ref('int_price_steps') }}

)

select
    tenant_id,
    pair_key,
    valid_from,
    valid_until,
    price,
    price_text,
    price_status,
    source_id,
    position,
    is_fallback,
    effective_from,
    window_start,
    is_partial,
    derivation
from steps
{% if is_appended() -%}
except
({{ changeable_steps(this) }})
{% endif -%}
order by pair_key, valid_from
