with

subjects as (

    select * from {{ ref('stg_control__subjects') }}

),

control_windows as (

    select * from {{ ref('stg_control__windows') }}

),

window_ranges as (

    select * from {{ ref('stg_pipeline__window_ranges') }}

),

covered_ranges as (

    select * from {{ ref('int_covered_ranges') }}

),

network_states as (

    select * from {{ ref('stg_chain__network_states') }}

),

failures as (

    select
        failures.network,
        coalesce(failures.from_block, 0) as from_block,
        coalesce(failures.to_block, {{ last_block() }}) as to_block
    from {{ ref('stg_pipeline__collection_failures') }} as failures
    where failures.batch_id = (select max(batches.batch_id) from {{ ref('stg_pipeline__batches') }} as batches)

),

blocks as (

    select * from {{ ref('stg_chain__blocks') }}

),

covered as (

    select
        subject_key,
        from_block,
        to_block,
        null::timestamp as from_time,
        true as is_covered,
        null::varchar as reason
    from covered_ranges

),

-- Inside a window: before, between and after its collected parts, up to its end or the newest block of the node.
before_covered as (

    select
        window_ranges.subject_key,
        coalesce(
            lag(covered_ranges.to_block) over (
                partition by window_ranges.window_key
                order by covered_ranges.from_block
            ) + 1,
            window_ranges.from_block
        ) as from_block,
        covered_ranges.from_block - 1 as to_block
    from window_ranges
    inner join covered_ranges on window_ranges.window_key = covered_ranges.window_key

),

after_covered as (

    select
        window_ranges.subject_key,
        coalesce(max(covered_ranges.to_block) + 1, window_ranges.from_block) as from_block,
        least(
            coalesce(window_ranges.to_block, any_value(network_states.head_number)),
            coalesce(any_value(network_states.head_number), window_ranges.to_block)
        ) as to_block
    from window_ranges
    left join covered_ranges on window_ranges.window_key = covered_ranges.window_key
    left join network_states on window_ranges.network = network_states.network
    group by window_ranges.subject_key, window_ranges.window_key, window_ranges.from_block, window_ranges.to_block

),

-- A window that the network has not reached yet begins after its newest block.
awaited as (

    select
        subjects.subject_key,
        coalesce(network_states.head_number + 1, 0) as from_block,
        null::bigint as to_block,
        min(control_windows.opened_at) as from_time
    from control_windows
    inner join subjects on control_windows.subject_key = subjects.subject_key
    left join network_states on subjects.network = network_states.network
    anti join window_ranges on control_windows.window_key = window_ranges.window_key
    group by subjects.subject_key, network_states.head_number

),

not_collected as (

    select
        subject_key,
        from_block,
        to_block,
        null::timestamp as from_time
    from before_covered
    where to_block >= from_block

    union all

    select
        subject_key,
        from_block,
        to_block,
        null::timestamp as from_time
    from after_covered
    where to_block >= from_block

    union all

    select * from awaited

),

not_collected_explained as (

    select
        not_collected.subject_key,
        not_collected.from_block,
        not_collected.to_block,
        not_collected.from_time,
        false as is_covered,
        case
            when exists (
                select 1 from failures
                where
                    failures.network = subjects.network
                    and failures.from_block <= coalesce(not_collected.to_block, {{ last_block() }})
                    and failures.to_block >= not_collected.from_block
            ) then 'ProviderFailed'
            else 'NotYetCollected'
        end as reason
    from not_collected
    inner join subjects on not_collected.subject_key = subjects.subject_key

),

-- Outside windows: before the first, between two, after the last.
outside as (

    select
        subject_key,
        coalesce(
            lag(to_block) over (
                partition by subject_key
                order by from_block
            ) + 1,
            0
        ) as from_block,
        from_block - 1 as to_block,
        case
            when row_number() over (
                partition by subject_key
                order by from_block
            ) = 1 then 'BeforeTracking'
            else 'TrackingDisabled'
        end as reason
    from window_ranges

    union all

    select
        window_ranges.subject_key,
        arg_max(window_ranges.to_block, window_ranges.from_block) + 1 as from_block,
        any_value(network_states.head_number) as to_block,
        'TrackingDisabled' as reason
    from window_ranges
    left join network_states on window_ranges.network = network_states.network
    group by window_ranges.subject_key
    having count(*) = count(window_ranges.to_block)

    union all

    select
        subjects.subject_key,
        0 as from_block,
        network_states.head_number as to_block,
        case when awaited.subject_key is null then 'NeverTracked' else 'BeforeTracking' end as reason
    from subjects
    left join network_states on subjects.network = network_states.network
    left join awaited on subjects.subject_key = awaited.subject_key
    anti join window_ranges on subjects.subject_key = window_ranges.subject_key

),

outside_explained as (

    select
        subject_key,
        from_block,
        to_block,
        null::timestamp as from_time,
        false as is_covered,
        reason
    from outside
    where
        to_block >= from_block
        or (to_block is null and reason = 'NeverTracked')

),

ranges as (

    select * from covered
    union all
    select * from not_collected_explained
    union all
    select * from outside_explained

),

timed as (

    select
        subjects.tenant_id,
        ranges.subject_key,
        ranges.from_block,
        ranges.to_block,
        coalesce(first_blocks.block_time, ranges.from_time) as from_time,
        last_blocks.block_time as to_time,
        ranges.is_covered,
        ranges.reason
    from ranges
    inner join subjects on ranges.subject_key = subjects.subject_key
    left join blocks as first_blocks
        on
            subjects.network = first_blocks.network
            and ranges.from_block = first_blocks.block_number
    left join blocks as last_blocks
        on
            subjects.network = last_blocks.network
            and ranges.to_block = last_blocks.block_number

)

select * from timed
order by subject_key, from_block
