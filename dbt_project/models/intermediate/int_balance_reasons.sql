{%- set latest = previous('int_balances_latest') -%}
{%- set earlier_touched = previous('int_balances_to_recompute') -%}

-- Why balances are computed again, and from which block on. One row per reason.
-- Moved: movements at or after the frontier. Unsettled: earlier rows at or after the frontier, which may be gone.
-- Read: new readings, and readings that the range shows now. Unfinished: the last build failed.
-- depends_on: {{ ref('int_frontier') }}, {{ ref('int_addresses') }}, {{ ref('stg_pipeline__transforms') }}
-- depends_on: {{ ref('int_movements_split_to_legs') }}, {{ ref('int_visible_readings') }}
-- depends_on: {{ ref('int_agreeing_readings') }}, {{ ref('stg_control__subjects') }}
{% if not keeps_balances() -%}
select
    null::bigint as range_from_block,
    null::bigint as balance_key,
    null::bigint as from_block,
    null::varchar as reason,
    null::boolean as is_quiet
where false
{%- else -%}
{%- set ahead = stretches_of(frontier_ranges()) -%}
{%- set first_ahead = ahead | map(attribute='from_block') | min if ahead else last_block() -%}
with

frontier as (

    select * from {{ ref('int_frontier') }}

),

legs as (

    select * from {{ keyed(rows_within(ref('int_movements_split_to_legs'), ahead)) }}

),

observations as (

    select * from {{ keyed(rows_within(ref('int_visible_readings'), ahead)) }}

),

-- Two scans, each of which skips the rows before the frontier.
last_rows as (
    {% for block in ['moved_block', 'checked_block'] %}
    select
        subject_key,
        range_from_block,
        balance_key,
        {{ block }} as block_number
    from {{ latest }}
    where {{ block }} >= {{ first_ahead }}
    {{ 'union all' if not loop.last }}
    {%- endfor %}
),

new_readings as (

    {{ new_readings() }}

),

agreeing as (

    select * from {{ ref('int_agreeing_readings') }}

),

moved as (

    select
        legs.range_from_block,
        legs.balance_key,
        min(frontier.from_block) as from_block,
        'Moved' as reason,
        false as is_quiet
    from legs
    inner join frontier on {{ is_at_frontier('legs') }}
    group by legs.range_from_block, legs.balance_key

),

at_or_after_frontier as (

    select
        last_rows.range_from_block,
        last_rows.balance_key,
        frontier.from_block,
        'Unsettled' as reason,
        false as is_quiet
    from last_rows
    inner join frontier on {{ is_at_frontier('last_rows') }}

),

read as (

    select
        observations.range_from_block,
        observations.balance_key,
        observations.block_number as from_block,
        'Read' as reason,
        false as is_quiet
    from observations
    inner join frontier on {{ is_at_frontier('observations') }}

    union all

    select
        new_readings.range_from_block,
        new_readings.balance_key,
        new_readings.block_number as from_block,
        'Read' as reason,
        agreeing.block_number is not null as is_quiet
    from new_readings
    left join agreeing
        on
            {{ is_same_row('new_readings', 'agreeing') }}
            and new_readings.block_number = agreeing.block_number

)

select * from moved
union all
select * from at_or_after_frontier
union all
select * from read
{%- if earlier_touched is not none %}
union all
select
    range_from_block,
    balance_key,
    from_block,
    'Unfinished' as reason,
    false as is_quiet
from {{ earlier_touched }}
where since_batch_id = {{ transformed_batch() }}
{%- endif %}
{%- endif %}
