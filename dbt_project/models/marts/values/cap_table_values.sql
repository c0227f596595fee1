{{ config(materialized='view', contract={'enforced': false}) }}

-- A view must find its tables in any copy of the file, so it names them without the database.
-- depends_on: {{ ref('cap_tables') }}, {{ ref('tokens') }}, {{ ref('token_pairs') }}, {{ ref('as_of_prices') }}
with

valued as (

    select
        cap_tables.*,
        token_pairs.pair_key,
        prices.price_text,
        marts.to_value(cap_tables.quantity_raw, token_pairs.token_decimals, prices.price) as value,
        {{ value_status('tokens.decimals', 'token_pairs.pair_key', 'prices.price_status') }} as value_status,
        token_pairs.priced_in as currency
    from marts.cap_tables as cap_tables
    inner join marts.tokens as tokens on cap_tables.subject_key = tokens.subject_key
    left join marts.token_pairs as token_pairs on cap_tables.subject_key = token_pairs.subject_key
    left join marts.as_of_prices as prices
        on
            token_pairs.pair_key = prices.pair_key
            and tokens.as_of_block_time = prices.at_time

)

select
    tenant_id,
    subject_key,
    rank,
    holder_address,
    quantity_raw,
    quantity,
    quantity_approx,
    percentage,
    percentage_approx,
    percentage_status,
    reconciliation,
    checked_block_number,
    pair_key,
    price_text,
    value,
    value::double as value_approx,
    value_status,
    currency
from valued
