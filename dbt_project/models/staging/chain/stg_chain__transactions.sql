with

source as (

    select * from {{ source('chain', 'transactions') }}

),

renamed as (

    select
        network,
        block_number,
        block_hash,
        transaction_index,
        transaction_hash,
        from_address,
        to_address,
        created_address,
        value_raw,
        fee_raw,
        gas_used,
        is_success,
        batch_id
    from source

)

select * from renamed
