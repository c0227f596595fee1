{{
    config(
        materialized='appended_table',
        pre_hook=["{{ delete_touched_holders() }}"],
    )
}}

-- Columns that depend neither on other holders nor on the time of the query. The views token_holders and cap_tables add
-- the reconciliation with the chain, and the ranks.
-- depends_on: {{ ref('int_touched_balances') }}, {{ ref('int_frontier') }}
with

views as (

    select * from {{ ref('int_covered_ranges') }}
    where
        kind = 'token'
        and is_as_of

),

adjusted as (

    select distinct
        subject_key,
        holder_address
    from {{ ref('int_balances_latest') }}
    where adjustment_count > 0

),

{% if keeps_rows() -%}
restarted as (

    {{ restarted_subjects() }}

),

touched as (

    select * from {{ ref('int_touched_balances') }}

),

-- Touched only in a range that is not the newest one: the balance stays, but is_adjusted may change.
touched_elsewhere as (

    select distinct
        touched.subject_key,
        touched.holder_address
    from touched
    inner join views
        on
            touched.subject_key = views.subject_key
            and touched.range_from_block != views.from_block
    anti join touched as newest
        on
            touched.subject_key = newest.subject_key
            and views.from_block = newest.range_from_block
            and touched.holder_address = newest.holder_address

),

balances as (

    select balances.*
    from {{ ref('int_balances_latest') }} as balances
    semi join restarted on balances.subject_key = restarted.subject_key

    union all

    -- By the batch the scan skips what earlier builds wrote.
    select balances.*
    from {{ ref('int_balances_latest') }} as balances
    semi join touched on {{ is_same_row('balances', 'touched') }}
    anti join restarted on balances.subject_key = restarted.subject_key
    where balances.since_batch_id = (select max(newest.since_batch_id) from {{ ref('int_touched_balances') }} as newest)

    union all

    select balances.*
    from {{ ref('int_balances_latest') }} as balances
    semi join touched_elsewhere
        on
            balances.subject_key = touched_elsewhere.subject_key
            and balances.holder_address = touched_elsewhere.holder_address
    anti join restarted on balances.subject_key = restarted.subject_key

),
{%- else -%}
balances as (

    select * from {{ ref('int_balances_latest') }}

),
{%- endif %}

holders as (

    select
        views.tenant_id,
        balances.subject_key,
        balances.holder_address,
        balances.balance_raw as quantity_raw,
        adjusted.subject_key is not null as is_adjusted,
        balances.moved_block as moved_block_number,
        {{ compared_block('balances') }} as checked_block_number,
        balances.opened_by
    from views
    inner join balances
        on
            views.subject_key = balances.subject_key
            and views.from_block = balances.range_from_block
    left join adjusted
        on
            balances.subject_key = adjusted.subject_key
            and balances.holder_address = adjusted.holder_address
    where
        balances.balance_raw != 0::bignum
        and balances.holder_address != {{ supply_holder() }}

)

select * from holders
order by subject_key asc, quantity_raw desc, holder_address asc
