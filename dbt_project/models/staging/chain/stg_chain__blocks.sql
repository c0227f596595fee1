with

source as (

    select * from {{ source('chain', 'blocks') }}

),

renamed as (

    select
        network,
        block_number,
        block_hash,
        parent_hash,
        block_time,
        coalesce(is_tail, false) as is_tail,
        batch_id
    from source

)

select * from renamed
