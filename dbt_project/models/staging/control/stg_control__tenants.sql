with

source as (

    select * from {{ source('control', 'control_tenants') }}

),

renamed as (

    select
        tenant_id,
        tenant_name
    from source

)

select * from renamed
