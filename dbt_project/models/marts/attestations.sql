with

attestations as (

    select * from {{ ref('int_attestations') }}

),

subjects as (

    select * from {{ ref('stg_control__subjects') }}

),

blocks as (

    select * from {{ ref('stg_chain__blocks') }}

),

labels as (

    select * from {{ ref('int_tokens_labelled') }}

),

described as (

    select
        subjects.tenant_id,
        attestations.subject_key,
        attestations.attestation_number,
        attestations.block_number,
        attestations.block_hash,
        case when blocks.block_hash = attestations.block_hash then blocks.block_time end as block_time,
        attestations.period_end is not null as is_automatic,
        case
            when attestations.unconfirmed_count > 0 then 'Incomplete'
            when attestations.difference_count > 0 then 'Adjusted'
            else 'Reconciled'
        end as status,
        attestations.balance_count,
        attestations.read_count,
        attestations.difference_count,
        attestations.unconfirmed_count,
        case subjects.kind when 'token' then attestations.balances_raw end as balances_raw,
        case
            when subjects.kind = 'token'
                then {{ to_amount('attestations.balances_raw', 'labels.decimals') }}
        end as balances,
        attestations.total_supply_raw,
        {{ to_amount('attestations.total_supply_raw', 'labels.decimals') }} as total_supply,
        attestations.supply_difference_raw,
        {{ to_amount('attestations.supply_difference_raw', 'labels.decimals') }} as supply_difference,
        attestations.attested_at,
        attestations.superseded_by is not null as is_superseded,
        attestations.superseded_by
    from attestations
    inner join subjects on attestations.subject_key = subjects.subject_key
    left join blocks
        on
            attestations.network = blocks.network
            and attestations.block_number = blocks.block_number
    left join labels
        on
            subjects.tenant_id = labels.tenant_id
            and attestations.network = labels.network
            and subjects.address = labels.token_address

)

select * from described
order by subject_key, attestation_number
