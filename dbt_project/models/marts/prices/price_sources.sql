with

sources as (

    select * from {{ ref('stg_prices__sources') }}

),

polls as (

    select * from {{ ref('stg_prices__polls') }}

),

polled as (

    select
        sources.tenant_id,
        sources.source_id,
        sources.name,
        sources.kind,
        sources.is_enabled,
        polls.polled_at,
        polls.error as poll_error
    from sources
    left join polls on sources.source_id = polls.source_id

)

select * from polled
order by tenant_id, source_id
