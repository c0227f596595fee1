-- Touching and overlapping collected ranges, united.
with

coverage as (

    select * from {{ ref('stg_pipeline__coverage') }}

),

marked as (

    select
        network,
        subject_kind,
        address,
        from_block,
        to_block,
        from_block > coalesce(
            max(to_block) over (
                partition by network, subject_kind, address
                order by from_block, to_block
                rows between unbounded preceding and 1 preceding
            ) + 1,
            -1
        ) as is_first
    from coverage

),

numbered as (

    select
        *,
        count_if(is_first) over (
            partition by network, subject_kind, address
            order by from_block, to_block
            rows unbounded preceding
        ) as range_number
    from marked

),

merged as (

    select
        network,
        subject_kind,
        address,
        min(from_block) as from_block,
        max(to_block) as to_block
    from numbered
    group by network, subject_kind, address, range_number

)

select * from merged
