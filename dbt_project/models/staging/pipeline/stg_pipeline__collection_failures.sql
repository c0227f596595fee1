with

source as (

    select * from {{ source('pipeline', 'collection_failures') }}

),

renamed as (

    select
        batch_id,
        network,
        call,
        from_block,
        to_block,
        detail,
        failed_at
    from source

)

select * from renamed
