with

pairs as (

    select * from {{ ref('stg_prices__pairs') }}

)

select {{ described_columns() }}
from pairs
order by pair_key
