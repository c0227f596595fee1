with

source as (

    select * from {{ source('pipeline', 'second_readings') }}

),

renamed as (

    select
        network,
        subject_kind,
        address,
        is_sampled,
        from_block,
        to_block
    from source

)

select * from renamed
