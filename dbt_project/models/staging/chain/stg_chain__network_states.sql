with

source as (

    select * from {{ source('chain', 'network_states') }}

),

renamed as (

    select
        network,
        status,
        detail,
        head_number,
        head_hash,
        head_time,
        final_number,
        capabilities,
        probed_at,
        failures_in_a_row,
        batch_id
    from source

)

select * from renamed
