-- How far the marts hold each covered range; read by the next build. Built last: a build that fails before leaves the
-- earlier record.
-- depends_on: {{ ref('token_activities') }}, {{ ref('wallet_activities') }}, {{ ref('balance_changes') }}
-- depends_on: {{ ref('cap_table_summaries') }}, {{ ref('wallet_balances') }}, {{ ref('supply_changes') }}
with

covered_ranges as (

    select * from {{ ref('int_covered_ranges') }}

),

native_ranges as (

    select * from {{ ref('int_native_ranges') }}

),

transformed as (

    select
        subject_key,
        false as is_native,
        from_block,
        to_block
    from covered_ranges

    union all

    select
        subject_key,
        true as is_native,
        from_block,
        to_block
    from native_ranges

)

select * from transformed
