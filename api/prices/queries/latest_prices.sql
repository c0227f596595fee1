-- The newest price of each pair up to a moment. It is the price of the step at the moment. If this step has none, it is
-- the price of the last earlier step with one. A separate branch reads steps without an end, so that DuckDB skips whole
-- blocks of older steps.
with standing as (

    select
        pair_key,
        valid_from,
        price_text is not null as is_in_force
    from marts.system_prices
    where tenant_id = $tenant_id and pair_key = any($pair_keys) and valid_from <= $moment and valid_until > $moment

    union all

    select
        pair_key,
        valid_from,
        price_text is not null as is_in_force
    from marts.system_prices
    where tenant_id = $tenant_id and pair_key = any($pair_keys) and valid_from <= $moment and valid_until is null

),

newest as (

    select
        pair_key,
        valid_from,
        is_in_force
    from standing
    where is_in_force

    union all

    select
        pair_key,
        max(valid_from) as valid_from,
        false as is_in_force
    from marts.system_prices
    where
        tenant_id = $tenant_id
        and pair_key in (select pair_key from standing where not is_in_force)
        and valid_from <= $moment
        and price_text is not null
    group by pair_key

)

select
    prices.pair_key,
    prices.price_text as price,
    prices.effective_from,
    prices.window_start,
    prices.source_id,
    prices.is_fallback,
    newest.is_in_force,
    pairs.max_age_seconds
from newest
inner join marts.system_prices as prices on newest.pair_key = prices.pair_key and newest.valid_from = prices.valid_from
inner join marts.price_pairs as pairs on newest.pair_key = pairs.pair_key
where prices.tenant_id = $tenant_id
