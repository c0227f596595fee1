-- How far the marts hold each window; read by the next build. Built last: a build that fails before leaves the earlier
-- record.
-- depends_on: {{ ref('token_activities') }}, {{ ref('wallet_activities') }}, {{ ref('balance_changes') }}
-- depends_on: {{ ref('cap_table_summaries') }}, {{ ref('wallet_balances') }}
select
    window_key,
    covered_to_block
from {{ ref('int_view_ranges') }}
where covered_to_block is not null
