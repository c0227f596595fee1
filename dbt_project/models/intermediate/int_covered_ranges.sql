-- The collected parts of each window: what a tenant may see of a subject.
with

subjects as (

    select * from {{ ref('stg_control__subjects') }}

),

windows as (

    select * from {{ ref('stg_pipeline__window_ranges') }}

),

coverage as (

    select * from {{ ref('int_coverage_merged_to_ranges') }}

),

covered as (

    select
        windows.subject_key,
        windows.window_key,
        subjects.network,
        subjects.kind,
        subjects.address,
        greatest(windows.from_block, coverage.from_block) as from_block,
        least(coalesce(windows.to_block, coverage.to_block), coverage.to_block) as to_block
    from windows
    inner join subjects on windows.subject_key = subjects.subject_key
    inner join coverage
        on
            subjects.network = coverage.network
            and subjects.kind = coverage.subject_kind
            and subjects.address = coverage.address
            and windows.from_block <= coverage.to_block
            and coalesce(windows.to_block, coverage.to_block) >= coverage.from_block
    where coalesce(windows.to_block, windows.from_block) >= windows.from_block

)

select * from covered
