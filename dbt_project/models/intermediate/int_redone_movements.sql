{%- set points = previous('int_balance_points') -%}

-- Movements of touched balances in the blocks that are computed again: from the points before the frontier, from the
-- raw rows at or after it.
-- depends_on: {{ ref('int_balances_to_recompute') }}, {{ ref('int_frontier') }}, {{ ref('int_addresses') }}
-- depends_on: {{ ref('int_movements_split_to_legs') }}, {{ ref('stg_control__subjects') }}
-- depends_on: {{ ref('stg_pipeline__transforms') }}
{% if not keeps_balances() -%}
select
    null::bigint as subject_key,
    null::bigint as range_from_block,
    null::bigint as balance_key,
    null::bigint as block_number,
    null::bignum as movement_raw
where false
{%- else -%}
with

frontier as (

    select * from {{ ref('int_frontier') }}

),

touched as (

    select
        touched.range_from_block,
        touched.balance_key,
        touched.from_block,
        coalesce(frontier.from_block, {{ last_block() }}) as frontier_block
    from {{ ref('int_balances_to_recompute') }} as touched
    left join frontier
        on
            touched.subject_key = frontier.subject_key
            and touched.range_from_block = frontier.range_from_block

),

reopened as (

    select * from touched
    where from_block < frontier_block

),

stored as (

    select
        points.subject_key,
        points.range_from_block,
        points.balance_key,
        points.block_number,
        points.movement_raw
    from {{ points_of('reopened', points) }} as points
    inner join reopened
        on
            {{ is_same_row('points', 'reopened') }}
            and points.block_number >= reopened.from_block
            and points.block_number < reopened.frontier_block
    where points.is_moved

),

legs as (

    select legs.*
    from {{ keyed(rows_within(ref('int_movements_split_to_legs'), stretches_of(frontier_ranges()))) }} as legs
    inner join touched
        on
            {{ is_same_row('legs', 'touched') }}
            and legs.block_number >= touched.frontier_block
            and legs.block_number >= touched.from_block

),

ahead as (

    {{ moved_in_blocks('legs') }}

)

select * from stored
union all
select * from ahead
{%- endif %}
