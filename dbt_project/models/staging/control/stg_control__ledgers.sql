with

source as (

    select * from {{ source('control', 'control_ledgers') }}

),

renamed as (

    select
        ledger_id,
        tenant_id,
        network,
        ledger_name,
        display_name
    from source

)

select * from renamed
