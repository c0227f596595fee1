with

source as (

    select * from {{ source('pipeline', 'coverage') }}

),

renamed as (

    select
        network,
        subject_kind,
        address,
        from_block,
        to_block,
        row_count,
        provider,
        collected_at,
        batch_id
    from source

)

select * from renamed
