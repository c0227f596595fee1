{{
    config(
        materialized='incremental',
        incremental_strategy='append',
        on_schema_change='fail',
        pre_hook=[
            "{{ delete_removed_subjects() }}",
            "{{ delete_reset_subjects() }}",
            "{{ delete_touched_balances(whole=true) }}",
        ],
    )
}}

-- The newest balance of every pair in each window, with what is known about how well it was checked.
with

points as (

    select points.*
    from {{ ref('int_balance_points') }} as points
    {% if is_incremental() -%}
    semi join {{ ref('int_touched_balances') }} as touched
        on
            points.subject_key = touched.subject_key
            and points.window_key = touched.window_key
            and points.token_address = touched.token_address
            and points.holder_address = touched.holder_address
    {%- else -%}
    -- depends_on: {{ ref('int_touched_balances') }}, {{ ref('int_changed_ranges') }}
    {%- endif %}

),

latest as (

    select
        subject_key,
        window_key,
        token_address,
        holder_address,
        arg_max(balance_raw, block_number) as balance_raw,
        max(block_number) filter (where is_moved) as moved_block,
        max(block_number) filter (where observed_raw is not null) as checked_block,
        bool_or(adjustment_raw is not null) as is_adjusted
    from points
    group by subject_key, window_key, token_address, holder_address

)

select * from latest
