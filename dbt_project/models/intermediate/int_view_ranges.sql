-- Each window with a block of its own, and how far it is collected from its first block without a gap.
with

subjects as (

    select * from {{ ref('stg_control__subjects') }}

),

windows as (

    select * from {{ ref('stg_pipeline__window_ranges') }}

),

covered_ranges as (

    select * from {{ ref('int_covered_ranges') }}

),

token_metadata as (

    select * from {{ ref('stg_chain__token_metadata') }}

),

ranges as (

    select
        windows.subject_key,
        windows.window_key,
        subjects.subject_id,
        subjects.kind,
        subjects.tenant_id,
        subjects.ledger_id,
        subjects.network,
        subjects.address,
        windows.from_block,
        windows.to_block,
        covered_ranges.to_block as covered_to_block,
        -- An NFT contract's events look like transfers and never become amounts.
        coalesce(subjects.kind = 'token' and token_metadata.contract_status = 'NotFungible', false) as is_not_fungible
    from windows
    inner join subjects on windows.subject_key = subjects.subject_key
    left join covered_ranges
        on
            windows.window_key = covered_ranges.window_key
            and windows.from_block = covered_ranges.from_block
    left join token_metadata
        on
            subjects.network = token_metadata.network
            and subjects.address = token_metadata.token_address
    where coalesce(windows.to_block, windows.from_block) >= windows.from_block

),

last_collected as (

    select
        subject_key,
        arg_max(window_key, from_block) as window_key
    from ranges
    where covered_to_block is not null
    group by subject_key

),

marked as (

    select
        ranges.*,
        last_collected.window_key is not null as is_as_of
    from ranges
    left join last_collected on ranges.window_key = last_collected.window_key

)

select * from marked
