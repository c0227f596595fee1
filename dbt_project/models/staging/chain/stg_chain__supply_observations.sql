with

source as (

    select * from {{ source('chain', 'supply_observations') }}

),

renamed as (

    select
        network,
        token_address,
        block_number,
        block_hash,
        total_supply_raw,
        batch_id,
        visible_to
    from source

)

select * from renamed
