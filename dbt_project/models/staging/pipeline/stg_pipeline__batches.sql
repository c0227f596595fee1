with

source as (

    select * from {{ source('pipeline', 'batches') }}

),

renamed as (

    select
        batch_id,
        run_id,
        started_at,
        finished_at
    from source

)

select * from renamed
