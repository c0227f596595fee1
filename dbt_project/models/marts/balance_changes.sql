{{
    config(
        materialized='appended_table',
        pre_hook=["{{ delete_from_frontier() }}"],
    )
}}

-- depends_on: {{ ref('int_balances_to_recompute') }}, {{ ref('int_frontier') }}, {{ ref('stg_pipeline__transforms') }}
with

points as (

    select points.*
    from ({{ written_points() }}) as points
    where
        points.balance_raw is not null
        and points.holder_address != {{ supply_holder() }}

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
        points.range_from_block,
        points.token_address,
        labels.symbol as token_symbol,
        labels.decimals as token_decimals,
        points.holder_address,
        points.block_number,
        blocks.block_time,
        points.movement_raw,
        points.balance_raw,
        {{ to_amount('points.balance_raw', 'labels.decimals') }} as balance,
        points.holder_change,
        points.is_first,
        points.is_moved,
        points.observed_raw is not null as is_observed,
        points.is_checked,
        points.adjustment_raw is not null as is_adjusted,
        points.opened_by
    from points
    inner join subjects on points.subject_key = subjects.subject_key
    left join blocks
        on
            subjects.network = blocks.network
            and points.block_number = blocks.block_number
    left join labels
        on
            subjects.tenant_id = labels.tenant_id
            and subjects.network = labels.network
            and points.token_address = labels.token_address

)

-- In the order of the points.
select * from changes
