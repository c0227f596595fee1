with

source as (

    select * from {{ source('prices', 'pair_windows') }}

),

renamed as (

    select
        pair_key,
        source_id,
        market_id,
        price_type,
        window_start,
        effective_from
    from source

)

select * from renamed
