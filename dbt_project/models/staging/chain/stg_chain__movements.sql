with

source as (

    select * from {{ source('chain', 'movements') }}

),

renamed as (

    select
        network,
        block_number,
        transaction_position,
        entry_position,
        transaction_hash,
        kind,
        asset,
        from_address,
        to_address,
        nobody_address,
        amount_raw,
        is_failed
    from source

)

select * from renamed
