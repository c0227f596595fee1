with

source as (

    select * from {{ source('pipeline', 'visible_ranges') }}

),

renamed as (

    select
        subject_key,
        is_native,
        from_block,
        to_block
    from source

)

select * from renamed
