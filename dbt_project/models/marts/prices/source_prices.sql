{{
    config(
        materialized='appended_table',
        pre_hook=[
            "{{ delete_removed_pairs() }}",
            "{{ delete_other_source_prices() }}",
        ],
    )
}}

with

judged as (

    {{ judged_prices() }}

)

select * from judged
{% if is_appended() -%}
except
{{ changeable_source_prices(this) }}
{% endif -%}
order by pair_key, effective_from, position
