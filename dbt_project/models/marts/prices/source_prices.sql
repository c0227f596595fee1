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
select * from {{ this }}
where
    effective_from >= {{ changed_since() }}
    and pair_key in (select pair_key from {{ ref('int_changed_pairs') }})
{% endif -%}
order by pair_key, effective_from, position
