with

source as (

    select * from {{ source('chain', 'movement_sides') }}

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
        amount_raw,
        is_failed,
        fee_raw,
        fee_status,
        counterparties,
        counterparty_count,
        detail,
        direction,
        holder_address,
        counterparty_address,
        movement_raw
    from source

)

select * from renamed
