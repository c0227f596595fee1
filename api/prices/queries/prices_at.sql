-- The step of the system price at each requested moment; a pair without one has no row. The as-of join sorts all
-- columns that it reads. So it reads only keys, and only steps that may apply between the first and the last moment.
with moments as (

    select
        unnest($pair_keys::bigint[]) as pair_key,
        unnest($moments::timestamp[]) as moment

),

steps as (

    select
        pair_key,
        valid_from
    from marts.system_prices
    where
        tenant_id = $tenant_id
        and pair_key = any($pair_keys)
        and valid_from <= $last_moment
        and (valid_until > $first_moment or valid_until is null)

),

found as (

    select
        moments.pair_key,
        moments.moment,
        steps.valid_from
    from moments
    asof inner join steps on moments.pair_key = steps.pair_key and moments.moment >= steps.valid_from

)

select
    found.pair_key,
    found.moment,
    prices.price_text as price,
    prices.price_status,
    prices.source_id,
    prices.position,
    prices.is_fallback,
    prices.effective_from,
    prices.window_start,
    prices.is_partial,
    prices.derivation,
    prices.valid_from,
    prices.valid_until
from found
inner join marts.system_prices as prices on found.pair_key = prices.pair_key and found.valid_from = prices.valid_from
where prices.tenant_id = $tenant_id
