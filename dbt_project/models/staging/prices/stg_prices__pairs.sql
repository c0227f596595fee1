with

source as (

    select * from {{ source('prices', 'control_price_pairs') }}

),

renamed as (

    select
        pair_key,
        pair_id,
        tenant_id,
        priced_as,
        priced_in,
        price_type,
        max_age_seconds,
        max_jump,
        max_deviation,
        created_at
    from source

)

select * from renamed
