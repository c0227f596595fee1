with

source as (

    select * from {{ source('pipeline', 'attestations') }}

),

renamed as (

    select
        subject_key,
        attestation_number,
        network,
        block_number,
        block_hash,
        period_end,
        read_count,
        difference_count,
        owed_count,
        range_from_block,
        balance_count,
        unconfirmed_count,
        balances_raw,
        balances_digest,
        total_supply_raw,
        supply_difference_raw,
        attested_at,
        batch_id
    from source

)

select * from renamed
