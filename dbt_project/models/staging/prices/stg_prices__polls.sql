with

source as (

    select * from {{ source('prices', 'price_polls') }}

),

renamed as (

    select
        source_id,
        polled_at,
        error
    from source

)

select * from renamed
