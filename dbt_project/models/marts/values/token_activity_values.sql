{%- set pair = 'touched.holder_address = coalesce(activities.to_address, activities.from_address)' -%}
{%- set columns = [
    'tenant_id', 'subject_key', 'activity_id', 'block_number', 'block_time', 'transaction_index', 'log_index', 'amount_raw'
] -%}
{{
    config(
        materialized='appended_table',
        pre_hook=[
            "{{ delete_ahead() }}",
            "{{ delete_changed_values() }}",
            "{{ delete_touched_values('token_activities', '" ~ pair ~ "') }}",
        ],
    )
}}

{{ activity_values('token_activities', columns, pair) }}
