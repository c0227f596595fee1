with

source as (

    select * from {{ source('prices', 'control_price_sources') }}

),

renamed as (

    select
        tenant_id,
        source_id,
        name,
        kind,
        is_enabled
    from source

)

select * from renamed
