{{
    config(
        materialized='appended_table',
        pre_hook=["{{ delete_touched_holders() }}"],
    )
}}

-- Columns that depend neither on other holders nor on the time of the query. The views token_holders and cap_tables add
-- the reconciliation with the chain, and the ranks.
-- depends_on: {{ ref('int_balances_to_recompute') }}, {{ ref('int_frontier') }}
with

views as (

    select * from {{ ref('int_covered_ranges') }}
    where
        kind = 'token'
        and is_as_of

),

latest as not materialized (

    select * from {{ ref('int_balances_latest') }}

),

adjusted as (

    select distinct balance_key
    from latest
    where adjustment_count > 0

),

{% if is_incremental_model() -%}
touched as (

    select balance_key from {{ ref('int_balances_to_recompute') }}

),

restarted as (

    {{ restarted_subjects() }}

),

balances as (

    select latest.*
    from latest
    semi join touched on latest.balance_key = touched.balance_key
    union all
    select latest.*
    from latest
    semi join restarted on latest.subject_key = restarted.subject_key
    anti join touched on latest.balance_key = touched.balance_key

),

{% else -%}
balances as (

    select * from latest

),

{% endif -%}
holders as (

    select
        views.tenant_id,
        balances.subject_key,
        balances.holder_address,
        balances.balance_raw as quantity_raw,
        adjusted.balance_key is not null as is_adjusted,
        balances.moved_block as moved_block_number,
        {{ compared_block('balances') }} as checked_block_number,
        balances.opened_by
    from views
    inner join balances
        on
            views.subject_key = balances.subject_key
            and views.from_block = balances.range_from_block
    left join adjusted on balances.balance_key = adjusted.balance_key
    where
        balances.balance_raw != 0::bignum
        and balances.holder_address != {{ supply_holder() }}

)

select * from holders
order by subject_key asc, quantity_raw desc, holder_address asc
