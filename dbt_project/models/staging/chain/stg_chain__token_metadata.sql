with

source as (

    select * from {{ source('chain', 'token_metadata') }}

),

renamed as (

    select
        network,
        token_address,
        contract_status,
        standard,
        symbol,
        name,
        decimals,
        detail,
        read_at,
        tenant_id
    from source

)

select * from renamed
