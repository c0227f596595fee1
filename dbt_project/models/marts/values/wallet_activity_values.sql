{%- set pair = 'touched.token_address = activities.token_address' -%}
{%- set columns = [
    'tenant_id', 'subject_key', 'activity_id', 'block_number', 'block_time', 'transaction_index', 'log_index',
    'trace_index', 'token_address', 'amount_raw'
] -%}
{{
    config(
        materialized='incremental',
        incremental_strategy='append',
        pre_hook=[
            "{{ delete_removed_subjects() }}",
            "{{ delete_changed_ranges() }}",
            "{{ delete_changed_values(has_tokens=true) }}",
            "{{ delete_touched_values('wallet_activities', 'touched.token_address = activities.token_address') }}",
        ],
    )
}}
{%- set activities = activities_to_value('wallet_activities', columns, pair, has_tokens=true) -%}

with

activities as (

    {{ activities }}

),

token_pairs as (

    select * from {{ ref('token_pairs') }}

),

linked as (

    select
        activities.*,
        token_pairs.pair_key,
        token_pairs.token_decimals
    from activities
    inner join token_pairs
        on
            activities.subject_key = token_pairs.subject_key
            and activities.token_address = token_pairs.token_address

),

moments as (

    select distinct
        pair_key,
        block_time as at_time
    from linked

),

prices as (

    {{ prices_in_force('moments', earliest('select block_time from (' ~ activities ~ ') as activities')) }}

),

valued as (

    select
        linked.*,
        prices.price,
        prices.price_text,
        prices.price_effective_from,
        prices.source_id,
        prices.is_fallback,
        {{ to_value('linked.amount_raw', 'linked.token_decimals', 'prices.price') }} as value,
        {{ value_status('linked.token_decimals', 'linked.pair_key', 'prices.price_status') }} as value_status
    from linked
    inner join prices
        on
            linked.pair_key = prices.pair_key
            and linked.block_time = prices.at_time

)

select
    tenant_id,
    subject_key,
    activity_id,
    block_number,
    block_time,
    transaction_index,
    token_address,
    pair_key,
    price,
    price_text,
    price_effective_from,
    source_id,
    is_fallback,
    value,
    value::double as value_approx,
    value_status
from valued
order by subject_key, block_number, transaction_index, log_index, trace_index nulls first
