with

source as (

    select * from {{ source('chain', 'metadata_checks') }}

),

renamed as (

    select
        network,
        token_address,
        tenant_id,
        metadata_status,
        block_number,
        read_at,
        confirmed_at,
        found_at,
        found_contract_status,
        found_standard,
        found_symbol,
        found_name,
        found_decimals
    from source

)

select * from renamed
