-- Of each pair and moment: its sources in order, each with its newest price at or before the moment.
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

prices as (

    select
        pair_key,
        source_id,
        price_text,
        effective_from,
        fresh_until,
        state,
        reason
    from marts.source_prices
    where tenant_id = $tenant_id and pair_key = any($pair_keys) and effective_from <= $last_moment

)

select
    asked.pair_key,
    asked.moment,
    asked.source_id,
    asked.position,
    asked.status,
    asked.detail,
    prices.price_text as price,
    prices.effective_from,
    prices.fresh_until,
    prices.state,
    prices.reason
from asked
asof left join prices
    on
        asked.pair_key = prices.pair_key
        and asked.source_id = prices.source_id
        and asked.moment >= prices.effective_from
order by asked.pair_key, asked.moment, asked.position
