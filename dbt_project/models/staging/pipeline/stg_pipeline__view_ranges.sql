with

source as (

    select * from {{ source('pipeline', 'view_ranges') }}

),

renamed as (

    select
        origin,
        origin_key,
        subject_key,
        network,
        from_block,
        to_block,
        native
    from source

)

select * from renamed
