with

pairs as (

    select * from {{ ref('stg_prices__pairs') }}

)

select
    tenant_id,
    pair_key,
    pair_id,
    priced_as,
    priced_in,
    price_type,
    max_age_seconds
from pairs
order by pair_key
