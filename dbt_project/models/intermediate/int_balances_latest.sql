{{
    config(
        materialized='incremental',
        incremental_strategy='append',
        on_schema_change='fail',
        pre_hook=[
            "{{ delete_gone_ranges() }}",
            "{{ delete_reset_subjects() }}",
            "{{ delete_touched_balances(whole=true) }}",
        ],
    )
}}

-- The newest balance of every pair in each covered range, with what is known about how well it was checked.
with

points as (

    select points.*
    from {{ ref('int_balance_points') }} as points
    {% if is_incremental() -%}
    semi join {{ ref('int_touched_balances') }} as touched
        on
            points.subject_key = touched.subject_key
            and points.range_from_block = touched.range_from_block
            and points.token_address = touched.token_address
            and points.holder_address = touched.holder_address
    {%- else -%}
    -- depends_on: {{ ref('int_touched_balances') }}, {{ ref('int_changed_ranges') }}
    {%- endif %}

),

latest as (

    select
        subject_key,
        range_from_block,
        token_address,
        holder_address,
        arg_max(balance_raw, block_number) as balance_raw,
        arg_max(opened_by, block_number) as opened_by,
        max(block_number) filter (where is_moved) as moved_block,
        max(block_number) filter (where observed_raw is not null) as checked_block,
        count(observed_raw) as reading_count,
        count(adjustment_raw) filter (where is_resting) as resting_adjustment_count,
        count(adjustment_raw) filter (where not is_resting and adjustment_raw < 0::bignum) as short_adjustment_count,
        count(adjustment_raw) filter (where is_ignored) as ignored_adjustment_count,
        count(adjustment_raw) as adjustment_count
    from points
    group by subject_key, range_from_block, token_address, holder_address

)

select * from latest
