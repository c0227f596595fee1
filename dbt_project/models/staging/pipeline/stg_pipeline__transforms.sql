with

source as (

    select * from {{ source('pipeline', 'transforms') }}

),

renamed as (

    select
        batch_id,
        control_revision,
        project_fingerprint,
        finished_at
    from source

)

select * from renamed
