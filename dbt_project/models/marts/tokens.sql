with

subjects as (

    select * from {{ ref('stg_control__subjects') }}
    where kind = 'token'

),

views as (

    select * from {{ ref('int_view_ranges') }}

),

token_metadata as (

    select * from {{ ref('stg_chain__token_metadata') }}

),

summaries as (

    select * from {{ ref('cap_table_summaries') }}

),

blocks as (

    select * from {{ ref('stg_chain__blocks') }}

),

network_states as (

    select * from {{ ref('stg_chain__network_states') }}

),

bounds as (

    select
        subject_key,
        min(from_block) as view_from_block,
        max(covered_to_block) filter (where is_as_of) as as_of_block_number
    from views
    group by subject_key

),

described as (

    select
        subjects.subject_key,
        subjects.subject_id as token_id,
        subjects.tenant_id,
        subjects.ledger_id,
        subjects.network,
        subjects.address,
        coalesce(token_metadata.contract_status, 'Unknown') as contract_status,
        token_metadata.standard,
        token_metadata.symbol as contract_symbol,
        token_metadata.name as contract_name,
        token_metadata.decimals,
        summaries.total_supply_raw,
        summaries.total_supply,
        summaries.holder_count,
        bounds.view_from_block,
        first_blocks.block_time as view_from_time,
        bounds.as_of_block_number,
        as_of_blocks.block_hash as as_of_block_hash,
        as_of_blocks.block_time as as_of_block_time,
        case
            when bounds.as_of_block_number <= network_states.final_number then 'Finalized'
            when bounds.as_of_block_number is not null then 'Confirmed'
        end as as_of_finality
    from subjects
    left join token_metadata
        on
            subjects.network = token_metadata.network
            and subjects.address = token_metadata.token_address
    left join summaries on subjects.subject_key = summaries.subject_key
    left join bounds on subjects.subject_key = bounds.subject_key
    left join blocks as first_blocks
        on
            subjects.network = first_blocks.network
            and bounds.view_from_block = first_blocks.block_number
    left join blocks as as_of_blocks
        on
            subjects.network = as_of_blocks.network
            and bounds.as_of_block_number = as_of_blocks.block_number
    left join network_states on subjects.network = network_states.network

)

select * from described
order by subject_key
