with

source as (

    select * from {{ source('pipeline', 'visible_heads') }}

),

renamed as (

    select
        subject_key,
        head_number,
        final_number
    from source

)

select * from renamed
