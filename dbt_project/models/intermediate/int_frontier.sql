{%- set held_views = previous('int_views_transformed') -%}
{%- set earlier_frontier = previous('int_frontier') -%}

-- The frontier: the first block of each covered range that is computed again since the last complete build. Other
-- ranges are kept. Newly visible blocks need no mark: a range is listed if it grew, was cut, began or was removed.
-- Ranges that an incomplete build had listed remain listed.
with

changes as (

    select * from {{ ref('stg_pipeline__changes') }}

),

views as (

    select * from {{ ref('stg_pipeline__visible_ranges') }}

),

covered_ranges as (

    select * from views
    where not is_native

),

-- From the marts.
held as (

    {% if held_views is not none -%}
    select * from {{ held_views }}
    {%- else -%}
    select * from views
    where false
    {%- endif %}

),

changed as (

    select
        changes.subject_key,
        changes.reason,
        changes.from_block,
        coalesce(changes.to_block, {{ last_block() }}) as to_block
    from changes
    where
        changes.batch_id > {{ transformed_batch() }}
        and changes.reason in ('Rows', 'Reorganisation', 'View', 'Metadata')

    union all

    select
        coalesce(views.subject_key, held.subject_key) as subject_key,
        'Coverage' as reason,
        case
            when held.subject_key is null then views.from_block
            when views.subject_key is null then held.from_block
            else least(views.to_block, held.to_block) + 1
        end as from_block,
        greatest(views.to_block, held.to_block) as to_block
    from views
    full outer join held
        on
            views.subject_key = held.subject_key
            and views.is_native = held.is_native
            and views.from_block = held.from_block
    where views.to_block is distinct from held.to_block

),

held_ranges as (

    select
        subject_key,
        from_block,
        to_block
    from held
    where not is_native

),

-- Rows contain the first block of their range, so if two ranges join, the later one is removed.
ranges as (

    select
        coalesce(covered_ranges.subject_key, held_ranges.subject_key) as subject_key,
        coalesce(covered_ranges.from_block, held_ranges.from_block) as range_from_block,
        greatest(covered_ranges.to_block, held_ranges.to_block) as to_block,
        covered_ranges.subject_key is null or held_ranges.subject_key is null as is_new_or_gone
    from covered_ranges
    full outer join held_ranges
        on
            covered_ranges.subject_key = held_ranges.subject_key
            and covered_ranges.from_block = held_ranges.from_block

),

named as (

    select
        ranges.subject_key,
        ranges.range_from_block,
        case
            when
                ranges.is_new_or_gone
                or changed.reason in ('View', 'Metadata')
                or changed.from_block < ranges.range_from_block
                then -1
            else changed.from_block
        end as from_block,
        ranges.to_block,
        changed.reason
    from ranges
    inner join changed
        on
            ranges.subject_key = changed.subject_key
            and ranges.range_from_block <= changed.to_block
            and ranges.to_block >= changed.from_block

    {% if earlier_frontier is not none -%}
    union all

    select
        earlier.subject_key,
        earlier.range_from_block,
        earlier.from_block,
        earlier.to_block,
        earlier.reason
    from {{ earlier_frontier }} as earlier
    where earlier.since_batch_id = {{ transformed_batch() }}
    {%- endif %}

),

least_blocks as (

    select
        subject_key,
        range_from_block,
        min(from_block) as from_block,
        max(to_block) as to_block,
        arg_min(reason, (from_block, reason)) as reason
    from named
    group by subject_key, range_from_block

)

select
    least_blocks.subject_key,
    least_blocks.range_from_block,
    case when covered_ranges.subject_key is null then -1 else least_blocks.from_block end as from_block,
    least_blocks.to_block,
    least_blocks.reason,
    covered_ranges.subject_key is null as is_gone,
    {{ transformed_batch() }} as since_batch_id
from least_blocks
left join covered_ranges
    on
        least_blocks.subject_key = covered_ranges.subject_key
        and least_blocks.range_from_block = covered_ranges.from_block
