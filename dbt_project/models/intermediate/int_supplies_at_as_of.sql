{{
    config(
        materialized='incremental',
        incremental_strategy='append',
        on_schema_change='fail',
        pre_hook=[
            "{{ delete_removed_subjects() }}",
            "{{ delete_changed_subjects() }}",
        ],
    )
}}

-- Total supply of each tracked token at its newest collected block: the newest reading in the view, moved by mints and
-- burns since.
with

views as (

    select views.*
    from {{ ref('int_view_ranges') }} as views
    {% if is_incremental() -%}
    semi join {{ ref('int_changed_subjects') }} as changed on views.subject_key = changed.subject_key
    {% else -%}
    -- depends_on: {{ ref('int_changed_subjects') }}
    {% endif -%}
    where
        views.kind = 'token'
        and views.is_as_of
        and not views.is_not_fungible

),

supply_observations as (

    select * from {{ ref('stg_chain__supply_observations') }}
    where total_supply_raw is not null

),

token_transfers as (

    select * from {{ ref('stg_chain__token_transfers') }}
    where {{ zero_address() }} in (from_address, to_address)

),

observed as (

    select
        views.subject_key,
        views.network,
        views.address,
        views.covered_to_block,
        max(supply_observations.block_number) as observed_block,
        arg_max(supply_observations.total_supply_raw, supply_observations.block_number) as observed_raw
    from views
    inner join supply_observations
        on
            views.network = supply_observations.network
            and views.address = supply_observations.token_address
            and supply_observations.block_number between views.from_block - 1 and views.covered_to_block
    group by views.subject_key, views.network, views.address, views.covered_to_block

),

moved as (

    select
        observed.subject_key,
        sum(
            case
                when token_transfers.from_address = token_transfers.to_address then 0::bignum
                when token_transfers.from_address = {{ zero_address() }} then token_transfers.amount_raw
                else 0::bignum - token_transfers.amount_raw
            end
        ) as movement_raw
    from observed
    inner join token_transfers
        on
            observed.network = token_transfers.network
            and observed.address = token_transfers.token_address
            and token_transfers.block_number between observed.observed_block + 1 and observed.covered_to_block
    group by observed.subject_key

),

supplies as (

    select
        observed.subject_key,
        observed.observed_block,
        observed.observed_raw + coalesce(moved.movement_raw, 0::bignum) as total_supply_raw
    from observed
    left join moved on observed.subject_key = moved.subject_key

)

select * from supplies
