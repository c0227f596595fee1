with

pairs as (

    select * from {{ ref('stg_prices__pairs') }}

),

routes as (

    select * from {{ ref('stg_prices__pair_routes') }}

),

-- All legs of a route have the same status, derivation and detail.
united as (

    select distinct
        pairs.tenant_id,
        routes.pair_key,
        routes.source_id,
        routes.position,
        routes.status,
        routes.derivation,
        routes.detail
    from routes
    inner join pairs on routes.pair_key = pairs.pair_key

)

select * from united
order by pair_key, position
