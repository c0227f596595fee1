-- The parts of wallets' covered ranges with transactions and internal transfers, which tenants request.
with

subjects as (

    select * from {{ ref('stg_control__subjects') }}

),

covered_ranges as (

    select * from {{ ref('int_covered_ranges') }}

),

native_ranges as (

    select * from {{ ref('stg_pipeline__visible_ranges') }}
    where is_native

),

described as (

    select
        native_ranges.subject_key,
        subjects.tenant_id,
        subjects.network,
        subjects.address,
        covered_ranges.from_block as range_from_block,
        native_ranges.from_block,
        native_ranges.to_block
    from native_ranges
    inner join subjects on native_ranges.subject_key = subjects.subject_key
    inner join covered_ranges
        on
            native_ranges.subject_key = covered_ranges.subject_key
            and native_ranges.from_block between covered_ranges.from_block and covered_ranges.to_block

)

select * from described
