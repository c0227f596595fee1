with

markets as (

    select * from {{ ref('stg_prices__markets') }}

)

select
    source_id,
    market_id,
    base,
    quote,
    base_code,
    quote_code,
    is_active,
    last_listed_at
from markets
order by source_id, market_id
