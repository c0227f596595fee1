-- How far the marts hold each covered range; read by the next build. Built last: a build that fails before leaves the
-- earlier record.
-- depends_on: {{ ref('token_activities') }}, {{ ref('wallet_activities') }}, {{ ref('balance_changes') }}
-- depends_on: {{ ref('token_positions') }}, {{ ref('wallet_positions') }}, {{ ref('supply_changes') }}
-- depends_on: {{ ref('recomputed_ranges') }}
select * from {{ ref('stg_pipeline__visible_ranges') }}
