-- The newest price of each pair up to a moment. It is in force when the step that holds the moment has it.
with steps as (

    select
        pair_key,
        max(valid_from) as newest,
        max(valid_from) filter (where price_text is not null) as priced
    from marts.system_prices
    where tenant_id = $tenant_id and pair_key = any($pair_keys) and valid_from <= $moment
    group by pair_key

)

select
    prices.pair_key,
    prices.price_text as price,
    prices.effective_from,
    prices.window_start,
    prices.source_id,
    prices.is_fallback,
    steps.priced = steps.newest as is_in_force,
    pairs.max_age_seconds
from steps
inner join marts.system_prices as prices on steps.pair_key = prices.pair_key and steps.priced = prices.valid_from
inner join marts.price_pairs as pairs on steps.pair_key = pairs.pair_key
where prices.tenant_id = $tenant_id and prices.pair_key = any($pair_keys)
