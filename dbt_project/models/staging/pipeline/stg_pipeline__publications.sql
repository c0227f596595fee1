with

source as (

    select * from {{ source('pipeline', 'publications') }}

),

renamed as (

    select
        version,
        batch_id,
        published_at
    from source

)

select * from renamed
