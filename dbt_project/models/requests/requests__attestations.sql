-- Balances at attested blocks, with the reading that confirms each: attestations read the others. The known supply of a
-- token is one more row, of the holder `supply`.
with

attestations as (

    select * from {{ ref('stg_pipeline__attestations') }}

),

balances as (

    select
        subject_key,
        attestation_number,
        range_from_block,
        token_address,
        holder_address,
        balance_raw,
        is_derived,
        confirming_block
    from {{ ref('int_attested_balances') }}

),

supplies as (

    select
        attestations.subject_key,
        attestations.attestation_number,
        points.range_from_block,
        subjects.address as token_address,
        {{ supply_holder() }} as holder_address,
        arg_max(points.balance_raw, points.block_number) as balance_raw,
        false as is_derived,
        null::bigint as confirming_block
    from attestations
    inner join {{ ref('stg_control__subjects') }} as subjects on attestations.subject_key = subjects.subject_key
    inner join {{ ref('int_covered_ranges') }} as ranges
        on
            attestations.subject_key = ranges.subject_key
            and attestations.block_number between ranges.from_block and ranges.to_block
    inner join {{ ref('int_balance_points') }} as points
        on
            attestations.subject_key = points.subject_key
            and ranges.from_block = points.range_from_block
            and attestations.block_number >= points.block_number
    where
        subjects.kind = 'token'
        and {{ keyed_address_key('points') }} = {{ supply_key() }}
    group by
        attestations.subject_key,
        attestations.attestation_number,
        points.range_from_block,
        subjects.address

)

select * from balances
union all
select * from supplies
