{{ config(alias='token_capitalization_days') }}

select
    days.tenant_id,
    days.subject_key,
    tokens.token_id,
    coalesce(tokens.name, tokens.symbol) as token,
    days.day,
    days.supply_approx as supply,
    days.supply as supply_exact,
    days.price::double as price,
    days.price_text as price_exact,
    days.price_status,
    days.value_approx as market_capitalization,
    days.value as market_capitalization_exact,
    days.value_status as market_capitalization_status,
    token_pairs.priced_in as currency
from {{ beside(ref('token_capitalization_days')) }} as days
inner join {{ beside(ref('tokens')) }} as tokens on days.subject_key = tokens.subject_key
left join {{ beside(ref('token_pairs')) }} as token_pairs on days.subject_key = token_pairs.subject_key
