with

source as (

    select * from {{ source('pipeline', 'window_ranges') }}

),

renamed as (

    select
        window_key,
        subject_key,
        network,
        from_block,
        to_block
    from source

)

select * from renamed
