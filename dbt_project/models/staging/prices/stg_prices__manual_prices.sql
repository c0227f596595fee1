with

source as (

    select * from {{ source('prices', 'control_manual_prices') }}

),

renamed as (

    select
        manual_price_key,
        supported_pair_key,
        price,
        effective_from,
        revision
    from source

)

select * from renamed
