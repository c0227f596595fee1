with

source as (

    select * from {{ source('chain', 'common_tokens') }}

),

renamed as (

    select
        network,
        token_address,
        symbol,
        decimals
    from source

)

select * from renamed
