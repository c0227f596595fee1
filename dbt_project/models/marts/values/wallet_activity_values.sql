{%- set pair = 'touched.token_address = activities.token_address' -%}
{%- set columns = [
    'tenant_id', 'subject_key', 'activity_id', 'block_number', 'block_time', 'transaction_index', 'log_index',
    'trace_index', 'token_address', 'amount_raw'
] -%}
{{
    config(
        materialized='appended_table',
        pre_hook=[
            "{{ delete_ahead() }}",
            "{{ delete_changed_values(has_tokens=true) }}",
            "{{ delete_touched_values('wallet_activities', '" ~ pair ~ "') }}",
        ],
    )
}}

{{ activity_values('wallet_activities', columns, pair, has_tokens=true) }}
