-- The blocks of each covered range that the marts contain; the next build reads it. Built last: an earlier failure of a
-- build leaves the previous record.
-- depends_on: {{ ref('token_activities') }}, {{ ref('wallet_activities') }}, {{ ref('balance_changes') }}
-- depends_on: {{ ref('token_positions') }}, {{ ref('wallet_positions') }}, {{ ref('supply_changes') }}
-- depends_on: {{ ref('recomputed_ranges') }}
select * from {{ ref('stg_pipeline__visible_ranges') }}
