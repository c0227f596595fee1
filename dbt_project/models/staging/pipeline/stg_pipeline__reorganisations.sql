with

source as (

    select * from {{ source('pipeline', 'reorganisations') }}

),

renamed as (

    select
        batch_id,
        network,
        ancestor_block,
        orphaned_block,
        orphaned_hash,
        canonical_hash,
        removed_rows,
        seen_at
    from source

)

select * from renamed
