{{
    config(
        materialized='appended_table',
        pre_hook=[
            "{{ delete_changed_subjects() }}",
            "{{ relink_tokens() }}",
        ],
    )
}}

-- depends_on: {{ ref('int_balances_to_recompute') }}, {{ ref('int_frontier') }}
with

{% if is_incremental_model() -%}
changed as ( -- noqa: ST03

    {{ changed_subjects() }}

),

{% endif -%}
views as (

    select views.*
    from {{ ref('int_covered_ranges') }} as views
    {% if is_incremental_model() -%}
    semi join changed on views.subject_key = changed.subject_key
    {% endif -%}
    where
        views.kind = 'wallet'
        and views.is_as_of

),

-- Most balances are those of tokens' holders.
balances as materialized (

    select balances.*
    from {{ ref('int_balances_latest') }} as balances
    semi join views on balances.subject_key = views.subject_key

),

listed_tokens as (

    select * from {{ ref('int_wallet_tokens_listed') }}

),

labels as (

    select * from {{ ref('int_tokens_labelled') }}

),

adjusted as (

    select distinct balance_key
    from balances
    where adjustment_count > 0

),

described as (

    select
        views.tenant_id,
        balances.subject_key,
        balances.token_address,
        listed_tokens.token_id,
        labels.symbol as token_symbol,
        labels.decimals as token_decimals,
        balances.balance_raw as quantity_raw,
        {{ to_amount('balances.balance_raw', 'labels.decimals') }} as quantity,
        adjusted.balance_key is not null as is_adjusted,
        balances.moved_block as moved_block_number,
        {{ compared_block('balances') }} as checked_block_number,
        balances.opened_by
    from views
    inner join balances
        on
            views.subject_key = balances.subject_key
            and views.from_block = balances.range_from_block
    left join listed_tokens
        on
            balances.subject_key = listed_tokens.subject_key
            and balances.token_address = listed_tokens.token_address
    left join labels
        on
            views.tenant_id = labels.tenant_id
            and views.network = labels.network
            and balances.token_address = labels.token_address
    left join adjusted on balances.balance_key = adjusted.balance_key
    where balances.balance_raw != 0::bignum

),

final as (

    select
        tenant_id,
        subject_key,
        token_address,
        token_id,
        token_symbol,
        token_decimals,
        quantity_raw,
        quantity,
        quantity::double as quantity_approx,
        is_adjusted,
        moved_block_number,
        checked_block_number,
        opened_by
    from described

)

select * from final
order by subject_key, token_address
