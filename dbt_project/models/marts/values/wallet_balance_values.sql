{{ config(materialized='view', contract={'enforced': false}) }}

-- A view must find its tables in any copy of the file, so it names them without the database.
-- depends_on: {{ ref('wallet_balances') }}, {{ ref('wallets') }}, {{ ref('token_pairs') }}, {{ ref('as_of_prices') }}
with

valued as (

    select
        balances.*,
        token_pairs.pair_key,
        prices.price_text,
        marts.to_value(balances.quantity_raw, balances.token_decimals, prices.price) as value,
        {{ value_status(
            'balances.token_decimals', 'token_pairs.pair_key', 'prices.price_status', 'balances.quantity_raw'
        ) }} as value_status,
        token_pairs.priced_in as currency
    from marts.wallet_balances as balances
    inner join marts.wallets as wallets on balances.subject_key = wallets.subject_key
    left join marts.token_pairs as token_pairs
        on
            balances.subject_key = token_pairs.subject_key
            and balances.token_address = token_pairs.token_address
    left join marts.as_of_prices as prices
        on
            token_pairs.pair_key = prices.pair_key
            and wallets.as_of_block_time = prices.at_time

)

select
    tenant_id,
    subject_key,
    token_address,
    token_id,
    token_symbol,
    token_decimals,
    quantity_raw,
    quantity,
    quantity_approx,
    reconciliation,
    checked_block_number,
    unread_reason,
    pair_key,
    price_text,
    value,
    value::double as value_approx,
    value_status,
    currency
from valued
