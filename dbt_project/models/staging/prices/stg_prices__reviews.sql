with

source as (

    select * from {{ source('prices', 'control_price_reviews') }}

),

renamed as (

    select
        pair_key,
        price_id,
        decision
    from source

)

select * from renamed
