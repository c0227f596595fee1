-- The collected ranges of each view that the tenant may see, united where they adjoin. Balances are carried forward
-- inside a range and opened by readings at the block before it.
with

subjects as (

    select * from {{ ref('stg_control__subjects') }}

),

covered_ranges as (

    select * from {{ ref('stg_pipeline__visible_ranges') }}
    where not is_native

),

token_metadata as (

    select * from {{ ref('stg_chain__token_metadata') }}

),

newest as (

    select
        subject_key,
        max(from_block) as from_block
    from covered_ranges
    group by subject_key

),

described as (

    select
        covered_ranges.subject_key,
        subjects.subject_id,
        subjects.kind,
        subjects.tenant_id,
        subjects.ledger_id,
        subjects.network,
        subjects.address,
        covered_ranges.from_block,
        covered_ranges.to_block,
        covered_ranges.from_block = newest.from_block as is_as_of,
        -- An NFT contract's events look like transfers, but never become amounts.
        coalesce(subjects.kind = 'token' and token_metadata.contract_status = 'NotFungible', false) as is_not_fungible
    from covered_ranges
    inner join subjects on covered_ranges.subject_key = subjects.subject_key
    inner join newest on covered_ranges.subject_key = newest.subject_key
    left join token_metadata
        on
            subjects.tenant_id = token_metadata.tenant_id
            and subjects.network = token_metadata.network
            and subjects.address = token_metadata.token_address

)

select * from described
