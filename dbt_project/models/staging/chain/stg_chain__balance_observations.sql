with

source as (

    select * from {{ source('chain', 'balance_observations') }}

),

renamed as (

    select
        network,
        token_address,
        holder_address,
        block_number,
        block_hash,
        quantity_raw,
        purpose,
        batch_id,
        visible_to
    from source

)

select * from renamed
