{{
    config(
        materialized='incremental',
        incremental_strategy='append',
        pre_hook=["{{ delete_changed_subjects() }}"],
    )
}}

-- depends_on: {{ ref('int_touched_balances') }}, {{ ref('int_frontier') }}
with

{% if keeps_rows() -%}
changed as ( -- noqa: ST03

    {{ changed_subjects() }}

),

{% endif -%}
views as (

    select views.*
    from {{ ref('int_covered_ranges') }} as views
    {% if keeps_rows() -%}
    semi join changed on views.subject_key = changed.subject_key
    {% endif -%}
    where
        views.kind = 'token'
        and views.is_as_of

),

balances as (

    select * from {{ ref('int_balances_latest') }}

),

supplies as (

    select
        balances.subject_key,
        balances.balance_raw as total_supply_raw
    from views
    inner join balances
        on
            views.subject_key = balances.subject_key
            and views.from_block = balances.range_from_block
    where balances.holder_address = {{ supply_holder() }}

),

labels as (

    select * from {{ ref('int_tokens_labelled') }}

),

adjusted as (

    select distinct
        subject_key,
        holder_address
    from balances
    where adjustment_count > 0

),

holders as (

    select
        views.tenant_id,
        balances.subject_key,
        row_number() over (
            partition by balances.subject_key
            order by balances.balance_raw desc, balances.holder_address asc
        ) as rank,
        balances.holder_address,
        balances.balance_raw as quantity_raw,
        labels.decimals,
        supplies.total_supply_raw,
        case
            when adjusted.holder_address is not null then 'Adjusted'
            when balances.checked_block >= coalesce(balances.moved_block, 0) then 'Reconciled'
            else 'Unchecked'
        end as reconciliation,
        balances.checked_block as checked_block_number,
        balances.opened_by
    from views
    inner join balances
        on
            views.subject_key = balances.subject_key
            and views.from_block = balances.range_from_block
    left join supplies on views.subject_key = supplies.subject_key
    left join labels
        on
            views.network = labels.network
            and views.address = labels.token_address
    left join adjusted
        on
            balances.subject_key = adjusted.subject_key
            and balances.holder_address = adjusted.holder_address
    where
        balances.balance_raw != 0::bignum
        and balances.holder_address != {{ supply_holder() }}

),

described as (

    select
        tenant_id,
        subject_key,
        rank,
        holder_address,
        quantity_raw,
        {{ to_amount('quantity_raw', 'decimals') }} as quantity,
        {{ percentage('quantity_raw', 'total_supply_raw') }} as percentage,
        reconciliation,
        checked_block_number,
        opened_by
    from holders

),

final as (

    select
        tenant_id,
        subject_key,
        rank,
        holder_address,
        quantity_raw,
        quantity,
        quantity::double as quantity_approx,
        percentage,
        percentage::double as percentage_approx,
        reconciliation,
        checked_block_number,
        opened_by
    from described

)

select * from final
order by subject_key, rank
