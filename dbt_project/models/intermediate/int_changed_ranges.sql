{%- set transformed_views = previous('int_views_transformed') -%}

-- What must be computed anew since the newest batch in the marts, united per reason. View and Metadata concern
-- everything. Coverage is what became visible: a filled gap, also an empty one, shows what was read behind it before.
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

    select * from {{ ref('int_view_ranges') }}

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

newly_covered as (

    {% if transformed_views is not none -%}
    select
        views.subject_key,
        views.network,
        'Coverage' as reason,
        coalesce(transformed.covered_to_block + 1, views.from_block - 1) as from_block,
        views.covered_to_block as to_block
    from views
    left join {{ transformed_views }} as transformed on views.window_key = transformed.window_key
    where views.covered_to_block > coalesce(transformed.covered_to_block, -1)
    {%- else -%}
    select
        subject_key,
        network,
        'Coverage' as reason,
        from_block,
        covered_to_block as to_block
    from views
    where false
    {%- endif %}

),

recent as (

    select * from marked_by_pipeline
    union all
    select * from newly_covered

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
