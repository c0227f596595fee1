-- For each pair and moment, its sources in order, each with its newest price at or before the moment.
with moments as (

    select
        unnest($pair_keys::bigint[]) as pair_key,
        unnest($moments::timestamp[]) as moment

),

asked as (

    select
        moments.pair_key,
        moments.moment,
        routes.source_id,
        routes.position,
        routes.status,
        routes.detail
    from moments
    inner join marts.price_routes as routes on moments.pair_key = routes.pair_key
    where routes.tenant_id = $tenant_id

),

said as (

    select
        pair_key,
        source_id,
        effective_from
    from marts.source_prices
    where tenant_id = $tenant_id and pair_key = any($pair_keys) and effective_from <= $last_moment

),

found as (

    select
        asked.pair_key,
        asked.moment,
        asked.source_id,
        asked.position,
        asked.status,
        asked.detail,
        said.effective_from
    from asked
    asof left join said
        on
            asked.pair_key = said.pair_key
            and asked.source_id = said.source_id
            and asked.moment >= said.effective_from

)

select
    found.pair_key,
    found.moment,
    found.source_id,
    found.position,
    found.status,
    found.detail,
    prices.price_text as price,
    prices.effective_from,
    prices.fresh_until,
    prices.state,
    prices.reason
from found
left join marts.source_prices as prices
    on
        found.pair_key = prices.pair_key
        and found.source_id = prices.source_id
        and found.effective_from = prices.effective_from
        and prices.tenant_id = $tenant_id
order by found.pair_key, found.moment, found.position
