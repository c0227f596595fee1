with

market_lists as (

    select * from {{ ref('stg_prices__market_lists') }}

)

select
    source_id,
    collected_at,
    market_count,
    error
from market_lists
order by source_id
