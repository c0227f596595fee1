with

source as (

    select * from {{ source('chain', 'token_transfers') }}

),

renamed as (

    select
        network,
        block_number,
        block_hash,
        transaction_index,
        transaction_hash,
        log_index,
        token_address,
        from_address,
        to_address,
        amount_raw,
        batch_id
    from source

)

select * from renamed
