{{ config(alias='tokens') }}

select
    tokens.tenant_id,
    tokens.subject_key,
    tokens.token_id,
    coalesce(tokens.name, tokens.symbol) as token,
    tokens.symbol,
    coalesce(shown.display_address, tokens.address) as token_address,
    tokens.ledger,
    tokens.network,
    tokens.standard,
    tokens.external_id,
    tokens.decimals,
    tokens.total_supply_approx as total_supply,
    tokens.total_supply as total_supply_exact,
    tokens.holder_count,
    prices.price::double as price,
    prices.price_text as price_exact,
    prices.price_status,
    prices.market_capitalization_approx as market_capitalization,
    prices.market_capitalization as market_capitalization_exact,
    prices.market_capitalization_status,
    prices.change24h_approx as change24h,
    prices.change24h as change24h_exact,
    prices.change24h_status,
    prices.priced_in as currency,
    tokens.as_of_block_number,
    tokens.as_of_block_time,
    tokens.as_of_finality
from {{ beside(ref('tokens')) }} as tokens
left join {{ beside(ref('token_prices')) }} as prices on tokens.subject_key = prices.subject_key
left join {{ beside(ref('addresses')) }} as shown on tokens.address = shown.address
