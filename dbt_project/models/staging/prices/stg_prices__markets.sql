with

source as (

    select * from {{ source('prices', 'markets') }}

),

renamed as (

    select
        source_id,
        market_id,
        base,
        quote,
        base_code,
        quote_code,
        is_active,
        last_listed_at
    from source

)

select * from renamed
