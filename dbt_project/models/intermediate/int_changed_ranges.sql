{%- set transformed_views = previous('int_views_transformed') -%}

-- What must be computed anew since the newest batch in the marts, united per reason. View and Metadata concern
-- everything. What became visible needs no mark: a filled gap, also an empty one, shows what was read behind it before.
with

changes as (

    select * from {{ ref('stg_pipeline__changes') }}

),

subjects as (

    select * from {{ ref('stg_control__subjects') }}

),

transforms as (

    select coalesce(max(batch_id), -1) as batch_id
    from {{ ref('stg_pipeline__transforms') }}

),

views as (

    select
        subject_key,
        false as is_native,
        from_block,
        to_block
    from {{ ref('int_covered_ranges') }}
    union all
    select
        subject_key,
        true as is_native,
        from_block,
        to_block
    from {{ ref('int_native_ranges') }}

),

marked_by_pipeline as (

    select
        changes.subject_key,
        subjects.network,
        changes.reason,
        case when changes.reason in ('View', 'Metadata') then -1 else changes.from_block end as from_block,
        case
            when changes.reason in ('View', 'Metadata') then {{ last_block() }}
            else coalesce(changes.to_block, {{ last_block() }})
        end as to_block
    from changes
    inner join subjects on changes.subject_key = subjects.subject_key
    cross join transforms
    where changes.batch_id > transforms.batch_id

),

-- Where the marts hold covered ranges otherwise than they are now: a range grew, is cut, began or is gone. Rows carry
-- the first block of their range, so of ranges that join the later one is gone.
shifted as (

    {% if transformed_views is not none -%}
    select
        subjects.subject_key,
        subjects.network,
        case
            when transformed.subject_key is null then 'Covered'
            when views.subject_key is null or views.to_block < transformed.to_block then 'Uncovered'
            else 'Extended'
        end as reason,
        case
            when transformed.subject_key is null then views.from_block - 1
            when views.subject_key is null then transformed.from_block
            else least(views.to_block, transformed.to_block) + 1
        end as from_block,
        greatest(views.to_block, transformed.to_block) as to_block
    from views
    full outer join {{ transformed_views }} as transformed
        on
            views.subject_key = transformed.subject_key
            and views.is_native = transformed.is_native
            and views.from_block = transformed.from_block
    inner join subjects on coalesce(views.subject_key, transformed.subject_key) = subjects.subject_key
    where views.to_block is distinct from transformed.to_block
    {%- else -%}
    select marked_by_pipeline.*
    from marked_by_pipeline
    semi join views on marked_by_pipeline.subject_key = views.subject_key
    where false
    {%- endif %}

),

recent as (

    select * from marked_by_pipeline
    union all
    select * from shifted

),

marked as (

    select
        *,
        from_block - 1 > coalesce(
            max(to_block) over (
                partition by subject_key, reason
                order by from_block, to_block
                rows between unbounded preceding and 1 preceding
            ),
            -3
        ) as is_first
    from recent

),

numbered as (

    select
        *,
        count_if(is_first) over (
            partition by subject_key, reason
            order by from_block, to_block
            rows unbounded preceding
        ) as range_number
    from marked

),

merged as (

    select
        subject_key,
        network,
        reason,
        min(from_block) as from_block,
        max(to_block) as to_block
    from numbered
    group by subject_key, network, reason, range_number

)

select * from merged
