{{
    config(
        materialized='appended_table',
        full_refresh=false,
    )
}}

-- A number for every address in the marts: of holders, tokens, wallets and counterparties. A number is never removed,
-- because kept rows contain it. Addresses without one are at or after the frontier, or newly read.
-- depends_on: {{ ref('int_frontier') }}, {{ ref('stg_control__subjects') }}, {{ ref('stg_pipeline__transforms') }}
with

legs as (

    select * from {{ rows_ahead(ref('int_movements_split_to_legs')) }}

),

sides as (

    select * from {{ rows_ahead(ref('stg_chain__movement_sides')) }}

),

observations as (

    select * from {{ ref('stg_chain__balance_observations') }}
    {% if is_incremental_model() -%}
    where batch_id > {{ transformed_batch() }}
    {%- endif %}

),

-- For tokens, the creation is joined.
subjects as (

    select * from {{ ref('stg_control__subjects') }}

),

seen as (

    select {{ supply_holder() }} as address
    union distinct
    select 'native' as address
    union distinct
    select keyed_address as address
    from legs
    union distinct
    select holder_address as address
    from observations
    union distinct
    select token_address as address
    from observations
    union distinct
    select address
    from subjects
    union distinct
    select counterparty_address as address
    from sides
    where counterparty_address is not null

)

select
    {% if is_appended() -%}
    (select max(latest.address_key) from {{ this }} as latest)
    {%- else -%}
    -1
    {%- endif %}
    + row_number() over (
        order by seen.address != {{ supply_holder() }}, seen.address != 'native', seen.address
    ) as address_key,
    seen.address
from seen
{% if is_appended() -%}
anti join {{ this }} as given on seen.address = given.address
{%- endif %}
