with

subjects as (

    select * from {{ ref('stg_control__subjects') }}
    where kind = 'wallet'

),

views as (

    select * from {{ ref('stg_pipeline__view_ranges') }}

),

covered_ranges as (

    select * from {{ ref('int_covered_ranges') }}

),

blocks as (

    select * from {{ ref('stg_chain__blocks') }}

),

heads as (

    select * from {{ ref('stg_pipeline__visible_heads') }}

),

bounds as (

    select
        views.subject_key,
        min(views.from_block) as view_from_block,
        max(covered_ranges.to_block) as as_of_block_number
    from views
    left join covered_ranges on views.subject_key = covered_ranges.subject_key
    group by views.subject_key

),

-- Complete when every block after the genesis block, which has no transactions, is in the view up to as-of.
completed as (

    select
        bounds.subject_key,
        bool_or(covered_ranges.from_block <= 1) as holdings_complete
    from bounds
    inner join covered_ranges
        on
            bounds.subject_key = covered_ranges.subject_key
            and bounds.as_of_block_number = covered_ranges.to_block
    group by bounds.subject_key

),

described as (

    select
        subjects.subject_key,
        subjects.subject_id as wallet_id,
        subjects.tenant_id,
        subjects.ledger_id,
        subjects.ledger,
        subjects.network,
        subjects.address,
        subjects.name,
        subjects.external_id,
        coalesce(completed.holdings_complete, false) as holdings_complete,
        bounds.view_from_block,
        first_blocks.block_time as view_from_time,
        bounds.as_of_block_number,
        as_of_blocks.block_hash as as_of_block_hash,
        as_of_blocks.block_time as as_of_block_time,
        case
            when bounds.as_of_block_number <= heads.final_number then 'Finalized'
            when bounds.as_of_block_number is not null then 'Confirmed'
        end as as_of_finality,
        subjects.shown_as
    from subjects
    left join bounds on subjects.subject_key = bounds.subject_key
    left join completed on subjects.subject_key = completed.subject_key
    left join blocks as first_blocks
        on
            subjects.network = first_blocks.network
            and bounds.view_from_block = first_blocks.block_number
    left join blocks as as_of_blocks
        on
            subjects.network = as_of_blocks.network
            and bounds.as_of_block_number = as_of_blocks.block_number
    left join heads on subjects.subject_key = heads.subject_key

)

select * from described
order by subject_key
