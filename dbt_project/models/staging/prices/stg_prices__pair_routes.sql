with

source as (

    select * from {{ source('prices', 'pair_routes') }}

),

renamed as (

    select
        pair_key,
        source_id,
        position,
        status,
        derivation,
        detail,
        leg_number,
        market_id,
        price_type,
        is_inverted,
        supported_pair_key
    from source

)

select * from renamed
