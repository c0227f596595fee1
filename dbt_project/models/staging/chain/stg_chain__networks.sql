with

source as (

    select * from {{ source('chain', 'networks') }}

),

renamed as (

    select
        network,
        display_name,
        family,
        chain_id,
        is_testnet,
        is_enabled,
        disabled_reason,
        coalesce(is_defined, true) as is_defined,
        native_symbol,
        native_decimals
    from source

)

select * from renamed
