{{ config(materialized='view') }}

-- Every balance of a subject at an attested block, with the block of the reading that confirms it, null without one.
-- The pipeline queries it for single attestations, and reads the unconfirmed balances.
with

attestations as (

    select * from {{ ref('stg_pipeline__attestations') }}

),

subjects as (

    select * from {{ ref('stg_control__subjects') }}

),

ranges as (

    select * from {{ ref('int_covered_ranges') }}

),

points as (

    select * from {{ ref('int_balance_points') }}
    where
        balance_raw is not null
        and balance_key % {{ address_keys() }} != {{ supply_key() }}

),

addresses as (

    select * from {{ ref('int_addresses') }}

),

behaviours as (

    select * from {{ ref('int_behaviours') }}

),

balances as (

    select
        attestations.subject_key,
        attestations.attestation_number,
        attestations.block_number as at_block,
        points.range_from_block,
        points.balance_key,
        arg_max(points.balance_raw, points.block_number) filter (
            where points.block_number <= attestations.block_number
        ) as balance_raw,
        max(points.block_number) filter (
            where points.block_number <= attestations.block_number and points.is_moved
        ) as moved_block,
        max(points.block_number) filter (
            where points.block_number <= attestations.block_number and points.is_checked
        ) as checked_block,
        min(points.block_number) filter (
            where
            points.block_number > attestations.block_number
            and (points.is_moved or points.adjustment_raw is not null)
        ) as next_changed_block,
        min(points.block_number) filter (
            where points.block_number > attestations.block_number and points.is_checked
        ) as next_checked_block,
        min(points.block_number) filter (
            where points.block_number > attestations.block_number and points.adjustment_raw is not null
        ) as next_adjusted_block,
        coalesce(
            any_value(points.opened_by) = 'Derived'
            and any_value(points.opening_block) >= attestations.block_number,
            false
        ) as is_derived
    from points
    inner join attestations on points.subject_key = attestations.subject_key
    inner join ranges
        on
            attestations.subject_key = ranges.subject_key
            and attestations.block_number between ranges.from_block and ranges.to_block
            and points.range_from_block = ranges.from_block
    group by
        attestations.subject_key,
        attestations.attestation_number,
        attestations.block_number,
        points.range_from_block,
        points.balance_key

),

described as (

    select
        balances.*,
        subjects.tenant_id,
        case subjects.kind when 'token' then subjects.address else addresses.address end as token_address,
        case subjects.kind when 'token' then addresses.address else subjects.address end as holder_address
    from balances
    inner join subjects on balances.subject_key = subjects.subject_key
    inner join addresses on {{ keyed_address_key('balances') }} = addresses.address_key
    where balances.balance_raw is not null

),

judged as (

    select
        described.*,
        behaviours.behaviour
    from described
    left join behaviours
        on
            described.subject_key = behaviours.subject_key
            and described.token_address = behaviours.token_address

)

select
    judged.subject_key,
    judged.attestation_number,
    judged.at_block as block_number,
    judged.range_from_block,
    judged.tenant_id,
    judged.token_address,
    judged.holder_address,
    judged.balance_raw,
    judged.is_derived,
    {{ confirming_block_case('judged', 'judged.at_block') }} as confirming_block
from judged
