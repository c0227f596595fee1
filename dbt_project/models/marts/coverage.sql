with

subjects as (

    select * from {{ ref('stg_control__subjects') }}

),

control_windows as (

    select * from {{ ref('stg_control__windows') }}

),

views as (

    select * from {{ ref('stg_pipeline__view_ranges') }}

),

covered_ranges as (

    select * from {{ ref('int_covered_ranges') }}

),

visible_ranges as (

    select * from {{ ref('stg_pipeline__visible_ranges') }}

),

collected_ranges as (

    select * from {{ ref('stg_pipeline__coverage') }}

),

heads as (

    select * from {{ ref('stg_pipeline__visible_heads') }}

),

second_readings as (

    select * from {{ ref('stg_pipeline__second_readings') }}

),

failures as (

    select
        failures.network,
        coalesce(failures.from_block, 0) as from_block,
        coalesce(failures.to_block, {{ last_block() }}) as to_block
    from {{ ref('stg_pipeline__collection_failures') }} as failures
    where failures.batch_id > {{ transformed_batch() }}

),

unread_blocks as (

    select
        subjects.subject_key,
        units.block_number
    from {{ ref('stg_pipeline__unread_units') }} as units
    inner join subjects
        on
            units.network = subjects.network
            and units.address = subjects.address
    where units.unit_kind = 'block'

),

blocks as (

    select * from {{ ref('stg_chain__blocks') }}

),

-- Windows that the network has not reached yet.
awaited as (

    select
        control_windows.subject_key,
        min(control_windows.opened_at) as from_time
    from control_windows
    anti join views
        on
            views.origin = 'Window'
            and control_windows.window_key = views.origin_key
    group by control_windows.subject_key

),

-- Every subject's axis, from the first block after the genesis block, which has no transactions, to the newest one.
axes as (

    select
        subjects.subject_key,
        subjects.tenant_id,
        subjects.network,
        -- A cycle that failed after collecting did not update the node's newest block.
        greatest(heads.head_number, max(covered_ranges.to_block)) as head_number,
        min(views.from_block) filter (where views.origin = 'Window') as tracked_from_block,
        any_value(awaited.from_time) as awaited_from_time
    from subjects
    left join heads on subjects.subject_key = heads.subject_key
    left join views on subjects.subject_key = views.subject_key
    left join covered_ranges on subjects.subject_key = covered_ranges.subject_key
    left join awaited on subjects.subject_key = awaited.subject_key
    group by subjects.subject_key, subjects.tenant_id, subjects.network, heads.head_number

),

-- It is cut at each beginning and end of a window, a request or a collected range.
edges as (

    select
        subject_key,
        1 as from_block
    from axes
    union distinct
    select
        subject_key,
        unnest([from_block, to_block + 1]) as from_block
    from views
    union distinct
    select
        subject_key,
        unnest([from_block, to_block + 1]) as from_block
    from covered_ranges

),

pieces as (

    select
        axes.*,
        edges.from_block,
        coalesce(
            lead(edges.from_block) over (
                partition by axes.subject_key
                order by edges.from_block
            ) - 1,
            axes.head_number
        ) as to_block
    from axes
    inner join edges on axes.subject_key = edges.subject_key
    where
        edges.from_block is not null
        and edges.from_block <= coalesce(axes.head_number, 1)

),

judged as (

    select
        pieces.subject_key,
        pieces.tenant_id,
        pieces.network,
        pieces.from_block,
        pieces.to_block,
        exists(
            select 1 from covered_ranges
            where
                covered_ranges.subject_key = pieces.subject_key
                and pieces.from_block between covered_ranges.from_block and covered_ranges.to_block
        ) as is_covered,
        exists(
            select 1 from views
            where
                views.subject_key = pieces.subject_key
                and pieces.from_block between views.from_block and coalesce(views.to_block, {{ last_block() }})
        ) as is_in_view,
        exists (
            select 1 from failures
            where
                failures.network = pieces.network
                and failures.from_block <= coalesce(pieces.to_block, {{ last_block() }})
                and failures.to_block >= pieces.from_block
        )
        or exists (
            select 1 from unread_blocks
            where
                unread_blocks.subject_key = pieces.subject_key
                and unread_blocks.block_number between pieces.from_block
                and coalesce(pieces.to_block, {{ last_block() }})
        ) as is_failed,
        case
            when pieces.from_block >= pieces.tracked_from_block then 'TrackingDisabled'
            when pieces.tracked_from_block is not null or pieces.awaited_from_time is not null then 'BeforeTracking'
            else 'NeverTracked'
        end as reason_outside
    from pieces

),

explained as (

    select
        subject_key,
        tenant_id,
        network,
        from_block,
        to_block,
        is_covered,
        case
            when is_covered then null
            when not is_in_view then reason_outside
            when is_failed then 'ProviderFailed'
            else 'NotYetCollected'
        end as reason
    from judged

),

numbered as (

    select
        *,
        row_number()
            over (
                partition by subject_key
                order by from_block
            )
        - row_number() over (
            partition by subject_key, is_covered, reason
            order by from_block
        ) as island
    from explained

),

ranges as (

    select
        subject_key,
        tenant_id,
        network,
        min(from_block) as from_block,
        max(to_block) as to_block,
        null::timestamp as from_time,
        is_covered,
        reason
    from numbered
    where to_block is not null or reason = 'NeverTracked'
    group by subject_key, tenant_id, network, is_covered, reason, island

    union all

    select
        subject_key,
        tenant_id,
        network,
        coalesce(head_number + 1, 1) as from_block,
        null::bigint as to_block,
        awaited_from_time as from_time,
        false as is_covered,
        'NotYetCollected' as reason
    from axes
    where awaited_from_time is not null

),

-- Kinds of rows that a collected range has.
kinds as (

    select distinct
        ranges.subject_key,
        ranges.from_block,
        ranges.to_block,
        case when visible_ranges.is_native then 'native' else subjects.kind end as kind
    from ranges
    inner join subjects on ranges.subject_key = subjects.subject_key
    inner join visible_ranges
        on
            ranges.subject_key = visible_ranges.subject_key
            and ranges.from_block <= visible_ranges.to_block
            and ranges.to_block >= visible_ranges.from_block
    where ranges.is_covered

),

-- The final blocks of a collected range count: the blocks after them are read a second time later.
kinds_verified as (

    select
        kinds.subject_key,
        kinds.from_block,
        kinds.kind,
        bool_or(not second_readings.is_sampled) as is_in_full
    from kinds
    inner join subjects on kinds.subject_key = subjects.subject_key
    inner join heads on kinds.subject_key = heads.subject_key
    left join second_readings
        on
            subjects.network = second_readings.network
            and kinds.kind = second_readings.subject_kind
            and subjects.address = second_readings.address
            and kinds.from_block >= second_readings.from_block
            and least(kinds.to_block, heads.final_number) <= second_readings.to_block
    where kinds.from_block <= heads.final_number
    group by kinds.subject_key, kinds.from_block, kinds.kind

),

-- A range is as verified as the kind of its rows that is verified least.
verified as (

    select
        subject_key,
        from_block,
        bool_and(is_in_full) as is_in_full
    from kinds_verified
    group by subject_key, from_block
    having bool_and(is_in_full is not null)

),

-- A wallet's movements of the native asset are collected apart from its transfers.
origins as (

    select
        visible_ranges.subject_key,
        coalesce(collected_ranges.data_set, 'node') as source,
        greatest(visible_ranges.from_block, collected_ranges.from_block) as from_block,
        least(visible_ranges.to_block, collected_ranges.to_block) as to_block
    from visible_ranges
    inner join subjects on visible_ranges.subject_key = subjects.subject_key
    inner join collected_ranges
        on
            subjects.network = collected_ranges.network
            and subjects.address = collected_ranges.address
            and case when visible_ranges.is_native then 'native' else subjects.kind end = collected_ranges.subject_kind
            and visible_ranges.from_block <= collected_ranges.to_block
            and visible_ranges.to_block >= collected_ranges.from_block

),

sources as (

    select
        ranges.subject_key,
        ranges.from_block,
        string_agg(distinct origins.source, ', ' order by origins.source) as source
    from ranges
    inner join origins
        on
            ranges.subject_key = origins.subject_key
            and ranges.from_block <= origins.to_block
            and ranges.to_block >= origins.from_block
    where ranges.is_covered
    group by ranges.subject_key, ranges.from_block

),

timed as (

    select
        ranges.tenant_id,
        ranges.subject_key,
        ranges.from_block,
        ranges.to_block,
        coalesce(first_blocks.block_time, ranges.from_time) as from_time,
        last_blocks.block_time as to_time,
        ranges.is_covered,
        ranges.reason,
        case
            when not ranges.is_covered then null
            when verified.is_in_full then 'true'
            when verified.is_in_full is not null then 'sampled'
            else 'false'
        end as verified,
        sources.source
    from ranges
    left join verified
        on
            ranges.subject_key = verified.subject_key
            and ranges.from_block = verified.from_block
    left join sources
        on
            ranges.subject_key = sources.subject_key
            and ranges.from_block = sources.from_block
    left join blocks as first_blocks
        on
            ranges.network = first_blocks.network
            and ranges.from_block = first_blocks.block_number
    left join blocks as last_blocks
        on
            ranges.network = last_blocks.network
            and ranges.to_block = last_blocks.block_number

)

select * from timed
order by subject_key, from_block
