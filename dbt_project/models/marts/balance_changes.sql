{{
    config(
        materialized='incremental',
        incremental_strategy='append',
        pre_hook=[
            "{{ delete_removed_subjects() }}",
            "{{ delete_reset_subjects() }}",
            "{{ delete_touched_balances() }}",
        ],
    )
}}

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
            and points.block_number >= touched.from_block
    {% endif -%}
    where points.balance_raw is not null

),

subjects as (

    select * from {{ ref('stg_control__subjects') }}

),

labels as (

    select * from {{ ref('int_tokens_labelled') }}

),

blocks as (

    select * from {{ ref('stg_chain__blocks') }}

),

changes as (

    select
        subjects.tenant_id,
        points.subject_key,
        points.window_key,
        points.token_address,
        points.holder_address,
        points.block_number,
        blocks.block_time,
        points.balance_raw,
        {{ to_amount('points.balance_raw', 'labels.decimals') }} as balance,
        points.observed_raw is not null as is_observed
    from points
    inner join subjects on points.subject_key = subjects.subject_key
    left join blocks
        on
            subjects.network = blocks.network
            and points.block_number = blocks.block_number
    left join labels
        on
            subjects.network = labels.network
            and points.token_address = labels.token_address

)

select * from changes
order by subject_key, window_key, block_number
