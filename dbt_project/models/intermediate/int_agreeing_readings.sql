{%- set points = previous('int_balance_points') -%}
{%- set latest = previous('int_balances_latest') -%}

-- New readings that equal the stored balance of their block, so that no balance changes. Readings that may change an
-- opening, or may locate a later adjustment, are not among them.
-- depends_on: {{ ref('int_frontier') }}, {{ ref('int_visible_readings') }}, {{ ref('int_addresses') }}
-- depends_on: {{ ref('stg_pipeline__transforms') }}
{% if not keeps_balances() -%}
select
    null::bigint as range_from_block,
    null::bigint as balance_key,
    null::bigint as block_number
where false
{%- else -%}
with

frontier as (

    select * from {{ ref('int_frontier') }}

),

settled as (

    select
        readings.*,
        latest.balance_raw as newest_raw,
        greatest(latest.moved_block, latest.checked_block) as newest_block
    from ({{ new_readings() }}) as readings
    inner join {{ latest }} as latest on {{ is_same_row('readings', 'latest') }}
    left join frontier
        on
            readings.subject_key = frontier.subject_key
            and readings.range_from_block = frontier.range_from_block
    where
        readings.block_number < coalesce(frontier.from_block, {{ last_block() }})
        and latest.opened_by is not null
        and (latest.opened_by != 'Derived' or readings.block_number > latest.opening_block)

),

-- Readings up to the newest point are compared with the points. The scan skips subjects without such readings.
among as materialized (

    select * from settled
    where block_number <= newest_block

),

subjects_among as (

    select distinct subject_key
    from among

),

compared as (

    select
        among.range_from_block,
        among.balance_key,
        among.block_number,
        any_value(among.observed_raw) as observed_raw,
        arg_max(points.balance_raw, points.block_number) filter (
            where points.block_number <= among.block_number
        ) as balance_raw,
        coalesce(
            arg_min(points.adjustment_raw is not null, points.block_number) filter (
                where points.block_number > among.block_number and points.observed_raw is not null
            ),
            false
        ) as is_before_adjustment
    from {{ points }} as points
    semi join subjects_among on points.subject_key = subjects_among.subject_key
    inner join among on {{ is_same_row('points', 'among') }}
    group by among.range_from_block, among.balance_key, among.block_number

)

select
    range_from_block,
    balance_key,
    block_number
from settled
where
    block_number > newest_block
    and observed_raw = newest_raw
union all
select
    range_from_block,
    balance_key,
    block_number
from compared
where
    observed_raw = balance_raw
    and not is_before_adjustment
{%- endif %}
