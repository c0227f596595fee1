with

source as (

    select * from {{ source('chain', 'found_holders') }}

),

renamed as (

    select
        network,
        subject_key,
        holder_address,
        batch_id
    from source

)

select * from renamed
