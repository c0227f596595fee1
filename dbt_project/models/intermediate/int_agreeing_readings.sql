{%- set points = previous('int_balance_points') -%}
{%- set latest = previous('int_balances_latest') -%}

-- New readings of blocks that are kept, of which the marts already say what was read: nothing is computed again for
-- them. Whether that is all that concerns the pair, int_touched_balances knows. is_stored: the block was read before.
-- Not among them are readings that an opening may rest on, and those before a reading that differs, which may be
-- located now. What moved in the block itself stands, and is told with it.
-- depends_on: {{ ref('int_frontier') }}, {{ ref('int_observations_in_view') }}, {{ ref('int_addresses') }}
-- depends_on: {{ ref('stg_pipeline__transforms') }}
{% if not (carries_on() and points is not none and latest is not none) or has_unfinished() -%}
select
    null::bigint as subject_key,
    null::bigint as range_from_block,
    null::bigint as balance_key,
    null::bigint as block_number,
    null::bignum as observed_raw,
    null::boolean as is_stored,
    null::boolean as is_moved,
    null::bignum as movement_raw,
    null::boolean as is_first,
    null::tinyint as holder_change
where false
{%- else -%}
with

frontier as (

    select * from {{ ref('int_frontier') }}

),

new_readings as (

    {{ new_readings() }}

),

settled as (

    select
        readings.*,
        latest.balance_raw as newest_raw,
        greatest(latest.moved_block, latest.checked_block) as newest_block
    from new_readings as readings
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

-- Behind its newest point a balance is the newest one.
behind as (

    select
        subject_key,
        range_from_block,
        balance_key,
        block_number,
        observed_raw,
        false as is_stored,
        null as point
    from settled
    where
        block_number > newest_block
        and observed_raw = newest_raw

),

-- Among the points, which are read for these pairs alone: a scan skips where none of a few subjects has a row.
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
        among.subject_key,
        among.range_from_block,
        among.balance_key,
        among.block_number,
        any_value(among.observed_raw) as observed_raw,
        arg_max(points.balance_raw, points.block_number) filter (
            where points.block_number <= among.block_number
        ) as balance_raw,
        coalesce(
            bool_or(points.block_number = among.block_number and points.observed_raw is not null), false
        ) as is_stored,
        any_value({
            'is_moved': points.is_moved,
            'movement_raw': points.movement_raw,
            'is_first': points.is_first,
            'holder_change': points.holder_change
        }) filter (where points.block_number = among.block_number) as point,
        coalesce(
            arg_min(points.adjustment_raw is not null, points.block_number) filter (
                where points.block_number > among.block_number and points.observed_raw is not null
            ),
            false
        ) as is_before_adjustment
    from {{ points }} as points
    semi join subjects_among on points.subject_key = subjects_among.subject_key
    inner join among on {{ is_same_row('points', 'among') }}
    group by among.subject_key, among.range_from_block, among.balance_key, among.block_number

),

agreeing as (

    select * from behind
    union all by name
    select * exclude (balance_raw, is_before_adjustment)
    from compared
    where
        observed_raw = balance_raw
        and (is_stored or not is_before_adjustment)

)

select
    subject_key,
    range_from_block,
    balance_key,
    block_number,
    observed_raw,
    is_stored,
    coalesce(struct_extract(point, 'is_moved'), false) as is_moved,
    coalesce(struct_extract(point, 'movement_raw'), 0::bignum) as movement_raw,
    coalesce(struct_extract(point, 'is_first'), false) as is_first,
    coalesce(struct_extract(point, 'holder_change'), 0::tinyint) as holder_change
from agreeing
{%- endif %}
