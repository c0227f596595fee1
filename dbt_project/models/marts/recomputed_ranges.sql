{%- set held_views = previous('int_views_transformed') -%}
{{
    config(
        materialized='appended_table',
        pre_hook=["{{ delete_removed_subjects() }}"],
    )
}}

-- Blocks that published versions showed and that were recomputed later. If several builds before the next version list
-- a range, it has one row.
with

views as (

    select * from {{ ref('int_covered_ranges') }}

),

frontier as (

    select * from {{ ref('int_frontier') }}

),

subjects as (

    select * from {{ ref('stg_control__subjects') }}

),

held as (

    -- Without kept tables the earlier ranges are unknown.
    select
        subject_key,
        max(to_block) as to_block
    from {{ held_views if held_views is not none else 'views' }}
    group by subject_key

),

versions as (

    select max(version) as version
    from {{ ref('stg_pipeline__publications') }}

),

numbers as (

    select
        numbered.tenant_id,
        max(numbered.data_version) as data_version
    from {{ ref('stg_pipeline__tenant_versions') }} as numbered
    inner join versions on numbered.after_version < versions.version
    group by numbered.tenant_id

),

-- The opening balances of a range are at the block before it.
pairs as ( -- noqa: ST03

    select
        touched.subject_key,
        greatest(min(touched.from_block), touched.range_from_block - 1) as from_block,
        max(touched.to_block) as to_block,
        'Reading' as reason
    from {{ ref('int_balances_to_recompute') }} as touched
    left join frontier
        on
            touched.subject_key = frontier.subject_key
            and touched.range_from_block = frontier.range_from_block
    where
        touched.from_block < coalesce(frontier.from_block, {{ last_block() }})
        and not touched.is_quiet
    group by touched.subject_key, touched.range_from_block

),

named as (

    {% if held_views is not none -%}
    select
        subject_key,
        greatest(from_block, range_from_block - 1) as from_block,
        to_block,
        reason
    from frontier
    union all
    select * from pairs
    {%- else -%}
    select
        subject_key,
        from_block - 1 as from_block,
        to_block,
        'Rebuild' as reason
    from views
    {%- endif %}

),

shown as (

    select
        versions.version as shown_until_version,
        subjects.tenant_id,
        numbers.data_version as shown_until_data_version,
        named.subject_key,
        named.from_block,
        least(named.to_block, held.to_block) as to_block,
        named.reason
    from named
    inner join held
        on
            named.subject_key = held.subject_key
            and named.from_block <= held.to_block
    inner join subjects on named.subject_key = subjects.subject_key
    left join numbers on subjects.tenant_id = numbers.tenant_id
    cross join versions
    where versions.version is not null

)

select shown.*
from shown
{% if is_appended() -%}
anti join {{ this }} as written
    on
        shown.shown_until_version = written.shown_until_version
        and shown.subject_key = written.subject_key
        and shown.from_block = written.from_block
        and shown.to_block = written.to_block
        and shown.reason = written.reason
{%- endif %}
