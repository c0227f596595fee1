with

source as (

    select * from {{ source('control', 'control_subjects') }}

),

renamed as (

    select
        subject_key,
        subject_id,
        kind,
        tenant_id,
        ledger_id,
        network,
        address,
        symbol,
        name,
        external_id,
        pair_key,
        created_at
    from source

)

select * from renamed
