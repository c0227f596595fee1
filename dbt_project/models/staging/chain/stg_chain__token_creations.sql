with

source as (

    select * from {{ source('chain', 'token_creations') }}

),

renamed as (

    select
        network,
        token_address,
        block_number,
        tenant_id
    from source

)

select * from renamed
