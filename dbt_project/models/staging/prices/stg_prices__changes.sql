with

source as (

    select * from {{ source('prices', 'price_changes') }}

),

renamed as (

    select
        batch_id,
        pair_key,
        from_time
    from source

)

select * from renamed
