{{ config(alias='prices') }}

select
    prices.tenant_id,
    prices.pair_key,
    pairs.priced_as || ' / ' || pairs.priced_in as pair,
    pairs.priced_as,
    pairs.priced_in as currency,
    pairs.price_type,
    prices.valid_from,
    prices.valid_until,
    prices.price::double as price,
    prices.price_text as price_exact,
    prices.price_status,
    prices.source_id,
    prices.is_fallback
from {{ beside(ref('system_prices')) }} as prices
inner join {{ beside(ref('price_pairs')) }} as pairs on prices.pair_key = pairs.pair_key
