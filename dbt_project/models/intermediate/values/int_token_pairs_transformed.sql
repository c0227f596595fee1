-- The pairs with which the marts' values were computed; the next build reads it. Built last: an earlier failure of a
-- build leaves the previous record.
-- depends_on: {{ ref('token_activity_values') }}, {{ ref('wallet_activity_values') }}
-- depends_on: {{ ref('token_value_days') }}, {{ ref('wallet_value_days') }}
with

token_pairs as (

    select * from {{ ref('token_pairs') }}

)

select
    subject_key,
    token_address,
    token_decimals,
    pair_key
from token_pairs
