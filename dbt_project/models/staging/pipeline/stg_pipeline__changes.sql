with

source as (

    select * from {{ source('pipeline', 'changes') }}

),

renamed as (

    select
        batch_id,
        subject_key,
        from_block,
        to_block,
        reason
    from source

)

select * from renamed
