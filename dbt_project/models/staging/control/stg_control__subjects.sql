with

source as (

    -- Without the descriptor, which only extraction reads.
    select * from {{ source('control', 'control_subjects') }}

),

ledgers as (

    select * from {{ source('control', 'control_ledgers') }}

),

renamed as (

    select
        source.subject_key,
        source.subject_id,
        source.kind,
        source.tenant_id,
        source.ledger_id,
        ledgers.ledger_name as ledger,
        source.network,
        source.address,
        source.symbol,
        source.name,
        source.external_id,
        source.pair_key,
        source.created_at,
        source.shown_as
    from source
    left join ledgers on source.ledger_id = ledgers.ledger_id

)

select * from renamed
