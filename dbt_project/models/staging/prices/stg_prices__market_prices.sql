with

source as (

    select * from {{ source('prices', 'prices') }}

),

renamed as (

    select
        source_id,
        market_id,
        price_type,
        window_start,
        effective_from,
        price,
        origin,
        is_partial,
        last_collected_at
    from source

)

select * from renamed
