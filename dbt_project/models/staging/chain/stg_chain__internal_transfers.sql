with

source as (

    select * from {{ source('chain', 'internal_transfers') }}

),

renamed as (

    select
        network,
        block_number,
        block_hash,
        transaction_index,
        transaction_hash,
        trace_index,
        from_address,
        to_address,
        amount_raw,
        kind,
        batch_id
    from source

)

select * from renamed
