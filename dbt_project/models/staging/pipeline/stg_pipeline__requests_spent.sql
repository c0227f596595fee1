with

source as (

    select * from {{ source('pipeline', 'requests_spent') }}

),

renamed as (

    select
        network,
        day,
        purpose,
        work,
        request_count,
        answer_bytes,
        unit_count,
        milliseconds
    from source

)

select * from renamed
