{{
    config(
        materialized='appended_table',
        full_refresh=false,
    )
}}

-- A number for every address that a balance may be known by, given once and never taken away: rows that are kept hold
-- it. What has none yet is ahead of the frontier, or newly read.
-- depends_on: {{ ref('int_frontier') }}, {{ ref('stg_control__subjects') }}, {{ ref('stg_pipeline__transforms') }}
with

legs as (

    select * from {{ rows_ahead(ref('int_movements_split_to_legs')) }}

),

observations as (

    select * from {{ ref('stg_chain__balance_observations') }}
    {% if keeps_rows() -%}
    where batch_id > {{ transformed_batch() }}
    {%- endif %}

),

-- Of tokens the creation is looked up.
tokens as (

    select * from {{ ref('int_covered_ranges') }}
    where kind = 'token'

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
    from tokens

)

select
    {% if appends() -%}
    (select max(latest.address_key) from {{ this }} as latest)
    {%- else -%}
    -1
    {%- endif %}
    + row_number() over (
        order by seen.address != {{ supply_holder() }}, seen.address != 'native', seen.address
    ) as address_key,
    seen.address
from seen
{% if appends() -%}
anti join {{ this }} as given on seen.address = given.address
{%- endif %}
