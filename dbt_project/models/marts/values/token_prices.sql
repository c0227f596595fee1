{{ config(materialized='view', contract={'enforced': false}) }}

-- A view must find its tables in any copy of the file, so it names them without the database.
-- depends_on: {{ ref('tokens') }}, {{ ref('token_pairs') }}, {{ ref('as_of_prices') }}
with

described as (

    select
        tokens.tenant_id,
        tokens.subject_key,
        token_pairs.pair_key,
        token_pairs.pair_id,
        token_pairs.priced_as,
        token_pairs.priced_in,
        tokens.as_of_block_time as as_of_time,
        prices.price,
        prices.price_text,
        case
            when token_pairs.pair_key is null then 'NoPair'
            when tokens.as_of_block_time is null then 'NotCovered'
            else prices.price_status
        end as price_status,
        prices.price_effective_from,
        prices.source_id,
        prices.is_fallback,
        tokens.total_supply_raw,
        tokens.total_supply_status,
        tokens.decimals,
        prices_before.price as price_24h,
        prices_before.price_text as price_24h_text,
        prices_before.price_status as price_24h_status
    from marts.tokens as tokens
    left join marts.token_pairs as token_pairs on tokens.subject_key = token_pairs.subject_key
    left join marts.as_of_prices as prices
        on
            token_pairs.pair_key = prices.pair_key
            and tokens.as_of_block_time = prices.at_time
    left join marts.as_of_prices as prices_before
        on
            token_pairs.pair_key = prices_before.pair_key
            and tokens.as_of_block_time - interval 24 hours = prices_before.at_time

),

valued as (

    select
        *,
        marts.to_value(total_supply_raw, decimals, price) as market_capitalization,
        case
            when price_status != 'Priced' then price_status
            when total_supply_raw is null then 'UnknownSupply'
            when decimals is null then 'UnknownDecimals'
            when total_supply_status = 'Unconfirmed' then 'Unconfirmed'
            else 'Priced'
        end as market_capitalization_status,
        marts.percentage(
            replace((price - price_24h)::varchar, '.', '')::bignum,
            replace(price_24h::varchar, '.', '')::bignum
        ) as change24h,
        case
            when price_status != 'Priced' then price_status
            else price_24h_status
        end as change24h_status
    from described

)

select
    tenant_id,
    subject_key,
    pair_key,
    pair_id,
    priced_as,
    priced_in,
    as_of_time,
    price,
    price_text,
    price_status,
    price_effective_from,
    source_id,
    is_fallback,
    market_capitalization,
    market_capitalization::double as market_capitalization_approx,
    market_capitalization_status,
    price_24h_text,
    change24h,
    change24h::double as change24h_approx,
    change24h_status
from valued
