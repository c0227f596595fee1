with

subjects as (

    select * from {{ ref('stg_control__subjects') }}
    where kind = 'token'

),

views as (

    select * from {{ ref('stg_pipeline__view_ranges') }}

),

covered_ranges as (

    select * from {{ ref('int_covered_ranges') }}

),

token_metadata as (

    select * from {{ ref('token_metadata') }}

),

-- The newest range of each token. Contracts that are not fungible have no figures.
newest_ranges as (

    select * from covered_ranges
    where
        is_as_of
        and not is_not_fungible

),

supply_changes as (

    select changes.*
    from {{ ref('supply_changes') }} as changes
    inner join newest_ranges
        on
            changes.subject_key = newest_ranges.subject_key
            and changes.range_from_block = newest_ranges.from_block

),

supplies as (

    select
        subject_key,
        arg_max(total_supply_raw, block_number) as total_supply_raw,
        max(block_number) filter (where is_moved) as moved_block,
        max(block_number) filter (where is_checked) as checked_block,
        -- The range begins with the token, or a reading of the supply before it was 0.
        bool_or(
            opened_by = 'Creation'
            or (opened_by = 'Observed' and block_number = range_from_block - 1 and total_supply_raw = 0::bignum)
        ) as opens_with_nothing
    from supply_changes
    group by subject_key

),

holder_counts as (

    select
        subject_key,
        count(*) as holder_count
    from {{ ref('token_positions') }}
    group by subject_key

),

blocks as (

    select * from {{ ref('stg_chain__blocks') }}

),

heads as (

    select * from {{ ref('stg_pipeline__visible_heads') }}

),

behaviours as (

    select * from {{ ref('int_behaviours') }}

),

creations as (

    select * from {{ ref('stg_chain__token_creations') }}

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

described as (

    select
        subjects.subject_key,
        subjects.subject_id as token_id,
        subjects.tenant_id,
        subjects.ledger_id,
        subjects.ledger,
        subjects.network,
        subjects.address,
        subjects.symbol,
        subjects.name,
        subjects.external_id,
        coalesce(token_metadata.contract_status, 'Unknown') as contract_status,
        token_metadata.standard,
        token_metadata.symbol as contract_symbol,
        token_metadata.name as contract_name,
        token_metadata.decimals,
        creations.block_number as created_block_number,
        behaviours.behaviour,
        supplies.total_supply_raw,
        {{ to_amount('supplies.total_supply_raw', 'token_metadata.decimals') }} as total_supply,
        total_supply::double as total_supply_approx,
        {{ supply_status(
            'supplies.total_supply_raw',
            confirming_block(
                'behaviours.behaviour', 'bounds.as_of_block_number', 'supplies.moved_block', 'supplies.checked_block'
            )
        ) }} as total_supply_status,
        case when newest_ranges.subject_key is not null then coalesce(holder_counts.holder_count, 0) end
            as holder_count,
        newest_ranges.from_block <= 1
        or case when newest_ranges.subject_key is not null then coalesce(supplies.opens_with_nothing, false) end
            as opens_without_holders,
        bounds.view_from_block,
        first_blocks.block_time as view_from_time,
        bounds.as_of_block_number,
        as_of_blocks.block_hash as as_of_block_hash,
        as_of_blocks.block_time as as_of_block_time,
        case
            when bounds.as_of_block_number <= heads.final_number then 'Finalized'
            when bounds.as_of_block_number is not null then 'Confirmed'
        end as as_of_finality,
        token_metadata.metadata_status
    from subjects
    left join token_metadata
        on
            subjects.tenant_id = token_metadata.tenant_id
            and subjects.network = token_metadata.network
            and subjects.address = token_metadata.token_address
    left join creations
        on
            subjects.tenant_id = creations.tenant_id
            and subjects.network = creations.network
            and subjects.address = creations.token_address
    left join newest_ranges on subjects.subject_key = newest_ranges.subject_key
    left join supplies on subjects.subject_key = supplies.subject_key
    left join holder_counts on subjects.subject_key = holder_counts.subject_key
    left join behaviours on subjects.subject_key = behaviours.subject_key
    left join bounds on subjects.subject_key = bounds.subject_key
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
