{%- set known = previous('int_attestations') -%}
{%- set is_carried = is_incremental_run() and known is not none -%}

-- Attestations, and the reason why each was superseded. A build checks only those with balances of the subject that
-- were computed again up to the block; a new pair counts if it has a balance there. A superseded one stays so.
-- depends_on: {{ ref('int_frontier') }}, {{ ref('int_balances_to_recompute') }}, {{ ref('int_balance_points') }}
-- depends_on: {{ ref('stg_pipeline__transforms') }}
with

attestations as (

    select * from {{ ref('stg_pipeline__attestations') }}
    where attested_at is not null

),

-- From the last build.
earlier as (

    {% if is_carried -%}
    select
        subject_key,
        attestation_number,
        superseded_by
    from {{ known }}
    where superseded_by is not null
    {%- else -%}
    select
        subject_key,
        attestation_number,
        null::varchar as superseded_by
    from attestations
    where false
    {%- endif %}

),

ranges as (

    select * from {{ ref('int_covered_ranges') }}

),

blocks as (

    select * from {{ ref('stg_chain__blocks') }}

),

balances as (

    select * from {{ ref('int_attested_balances') }}

),

{% if is_carried -%}
changed as (

    select
        subject_key,
        from_block
    from {{ ref('int_frontier') }}
    union all
    select
        subject_key,
        from_block
    from {{ ref('int_balances_to_recompute') }}
    where not is_quiet

),

first_changed as (

    select
        subject_key,
        min(from_block) as from_block
    from changed
    group by subject_key

),

suspected as (

    select attestations.*
    from attestations
    inner join first_changed
        on
            attestations.subject_key = first_changed.subject_key
            and attestations.block_number >= first_changed.from_block

),

{% else -%}
suspected as (

    select * from attestations

),

{% endif -%}
summed as (

    select
        balances.subject_key,
        balances.attestation_number,
        count_if(balances.balance_raw != 0::bignum) as balance_count,
        -- The same digest as in the record.
        coalesce(
            bit_xor(
                md5_number(concat_ws('|', balances.token_address, balances.holder_address, balances.balance_raw))
            ) filter (where balances.balance_raw != 0::bignum),
            0
        )::varchar as balances_digest
    from balances
    inner join suspected
        on
            balances.subject_key = suspected.subject_key
            and balances.attestation_number = suspected.attestation_number
    group by balances.subject_key, balances.attestation_number

),

compared as (

    select
        suspected.subject_key,
        suspected.attestation_number,
        suspected.block_hash != coalesce(blocks.block_hash, '') as is_other_block,
        suspected.range_from_block != coalesce(ranges.from_block, -1) as is_other_range,
        suspected.balance_count != coalesce(summed.balance_count, 0) as is_other_count,
        suspected.balances_digest != coalesce(summed.balances_digest, '0') as is_other_balance
    from suspected
    left join blocks
        on
            suspected.network = blocks.network
            and suspected.block_number = blocks.block_number
    left join ranges
        on
            suspected.subject_key = ranges.subject_key
            and suspected.block_number between ranges.from_block and ranges.to_block
    left join summed
        on
            suspected.subject_key = summed.subject_key
            and suspected.attestation_number = summed.attestation_number

),

judged as (

    select
        subject_key,
        attestation_number,
        case
            when is_other_block then 'ChainReset'
            when is_other_range then 'FilledGap'
            when is_other_count then 'NewHolder'
            when is_other_balance then 'OtherBalance'
        end as cause
    from compared

)

select
    attestations.*,
    coalesce(earlier.superseded_by, judged.cause) as superseded_by
from attestations
left join earlier
    on
        attestations.subject_key = earlier.subject_key
        and attestations.attestation_number = earlier.attestation_number
left join judged
    on
        attestations.subject_key = judged.subject_key
        and attestations.attestation_number = judged.attestation_number
