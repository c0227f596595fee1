{{
    config(
        materialized='incremental',
        incremental_strategy='append',
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
{% if is_incremental() -%}
except
select written.*
from {{ this }} as written
semi join {{ ref('int_changed_pairs') }} as changed on written.pair_key = changed.pair_key
where written.effective_from >= {{ changed_since() }}
{% endif -%}
order by pair_key, effective_from, position
