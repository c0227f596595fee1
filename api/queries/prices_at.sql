-- The step of the system price at each moment asked for; a pair without one has no row. Only the steps between the first
-- moment and the last one are looked at.
with moments as (

    select
        unnest($pair_keys::bigint[]) as pair_key,
        unnest($moments::timestamp[]) as moment

),

steps as (

    select
        pair_key,
        price_text,
        price_status,
        source_id,
        position,
        is_fallback,
        effective_from,
        window_start,
        is_partial,
        derivation,
        valid_from,
        valid_until
    from marts.system_prices
    where
        tenant_id = $tenant_id
        and pair_key = any($pair_keys)
        and valid_from <= $last_moment
        and (valid_until is null or valid_until > $first_moment)

)

select
    moments.pair_key,
    moments.moment,
    steps.price_text as price,
    steps.price_status,
    steps.source_id,
    steps.position,
    steps.is_fallback,
    steps.effective_from,
    steps.window_start,
    steps.is_partial,
    steps.derivation,
    steps.valid_from,
    steps.valid_until
from moments
asof inner join steps on moments.pair_key = steps.pair_key and moments.moment >= steps.valid_from
