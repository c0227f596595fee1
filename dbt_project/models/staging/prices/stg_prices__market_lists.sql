with

source as (

    select * from {{ source('prices', 'market_lists') }}

),

renamed as (

    select
        source_id,
        collected_at,
        market_count,
        error
    from source

)

select * from renamed
