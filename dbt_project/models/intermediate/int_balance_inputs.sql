{%- set carries_on = carries_balances_on() -%}

-- What balance points are computed from: per block the movement and the reading of a pair. Where a balance is carried
-- on, its pair begins with the newest point before what is computed anew (is_carried).
with

observations as (

    select * from {{ ref('int_observations_in_view') }}

),

{% if carries_on -%}
touched as (

    select * from {{ ref('int_touched_balances') }}

),

points as (

    select
        points.*,
        touched.from_block
    from {{ previous('int_balance_points') }} as points
    inner join touched
        on
            points.subject_key = touched.subject_key
            and points.range_from_block = touched.range_from_block
            and points.token_address = touched.token_address
            and points.holder_address = touched.holder_address

),

changed_ranges as (

    {{ changed_covered_ranges() }}

),

carried as ( -- noqa: ST03

    select
        subject_key,
        range_from_block,
        token_address,
        holder_address,
        block_number,
        cumulative_raw as movement_raw,
        is_moved,
        balance_raw as observed_raw,
        observation_purpose,
        read_raw,
        moved_block,
        offset_block,
        opened_by,
        true as is_carried
    from points
    where block_number < from_block
    qualify row_number() over (
        partition by subject_key, range_from_block, token_address, holder_address
        order by block_number desc
    ) = 1

),

movements as (

    select
        points.subject_key,
        points.range_from_block,
        points.token_address,
        points.holder_address,
        points.block_number,
        points.movement_raw
    from points
    anti join changed_ranges
        on
            points.subject_key = changed_ranges.subject_key
            and points.range_from_block = changed_ranges.range_from_block
            and points.block_number between changed_ranges.from_block and changed_ranges.to_block
    where
        points.is_moved
        and points.block_number >= points.from_block

    union all

    select
        legs.subject_key,
        legs.range_from_block,
        legs.token_address,
        legs.holder_address,
        legs.block_number,
        legs.movement_raw
    from {{ recent_rows(ref('int_movements_split_to_legs'), true) }} as legs
    inner join touched
        on
            legs.subject_key = touched.subject_key
            and legs.range_from_block = touched.range_from_block
            and legs.token_address = touched.token_address
            and legs.holder_address = touched.holder_address
            and legs.block_number >= touched.from_block
    semi join changed_ranges
        on
            legs.subject_key = changed_ranges.subject_key
            and legs.range_from_block = changed_ranges.range_from_block
            and legs.block_number between changed_ranges.from_block and changed_ranges.to_block

),

readings as (

    select observations.*
    from observations
    inner join touched
        on
            observations.subject_key = touched.subject_key
            and observations.range_from_block = touched.range_from_block
            and observations.token_address = touched.token_address
            and observations.holder_address = touched.holder_address
            and observations.block_number >= touched.from_block
    where touched.is_known

),

{% else -%}
-- depends_on: {{ ref('int_touched_balances') }}, {{ ref('int_changed_ranges') }}, {{ ref('int_covered_ranges') }}
-- depends_on: {{ ref('int_changed_spans') }}
movements as (

    select * from {{ ref('int_movements_split_to_legs') }}

),

listed_tokens as (

    select * from {{ ref('int_wallet_tokens_listed') }}

),

-- A pair is known once it moved, in any range of the view.
known as (

    select distinct
        subject_key,
        token_address,
        holder_address
    from movements

),

readings as (

    select observations.*
    from observations
    left join known
        on
            observations.subject_key = known.subject_key
            and observations.token_address = known.token_address
            and observations.holder_address = known.holder_address
    left join listed_tokens
        on
            observations.subject_key = listed_tokens.subject_key
            and observations.token_address = listed_tokens.token_address
    where
        known.subject_key is not null
        or listed_tokens.token_address is not null
        or observations.holder_address = {{ supply_holder() }}

),

{% endif -%}
moved as (

    select
        subject_key,
        range_from_block,
        token_address,
        holder_address,
        block_number,
        sum(movement_raw) as movement_raw
    from movements
    group by subject_key, range_from_block, token_address, holder_address, block_number

),

-- Readings of one block agree; a reading made for a later purpose replaces the one before.
observed as (

    select
        subject_key,
        range_from_block,
        token_address,
        holder_address,
        block_number,
        arg_max(quantity_raw, batch_id) as observed_raw,
        arg_max(purpose, batch_id) as observation_purpose
    from readings
    group by subject_key, range_from_block, token_address, holder_address, block_number

),

inputs as (

    select
        coalesce(moved.subject_key, observed.subject_key) as subject_key,
        coalesce(moved.range_from_block, observed.range_from_block) as range_from_block,
        coalesce(moved.token_address, observed.token_address) as token_address,
        coalesce(moved.holder_address, observed.holder_address) as holder_address,
        coalesce(moved.block_number, observed.block_number) as block_number,
        coalesce(moved.movement_raw, 0::bignum) as movement_raw,
        moved.subject_key is not null as is_moved,
        observed.observed_raw,
        observed.observation_purpose,
        observed.observed_raw as read_raw,
        case when moved.subject_key is not null then moved.block_number end as moved_block,
        case when observed.subject_key is not null then observed.block_number end as offset_block,
        null::varchar as opened_by,
        false as is_carried
    from moved
    full outer join observed
        on
            moved.subject_key = observed.subject_key
            and moved.range_from_block = observed.range_from_block
            and moved.token_address = observed.token_address
            and moved.holder_address = observed.holder_address
            and moved.block_number = observed.block_number
    {%- if carries_on %}
    union all
    select * from carried
    {%- endif %}

)

select * from inputs
