with

source as (

    select * from {{ source('pipeline', 'tenant_versions') }}

),

renamed as (

    select
        tenant_id,
        data_version,
        after_version,
        raised_at
    from source

)

select * from renamed
