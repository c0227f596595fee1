{%- set figures = previous('int_cap_table_figures') -%}
{%- set inputs = 'subject_key, total_supply_raw, total_supply_status, holder_count, opens_without_holders' -%}

-- Tokens with figures to compute again: a holder's balance or another input differs from the last complete build. The
-- quantities of all holders are one text.
-- depends_on: {{ ref('int_balances_to_recompute') }}, {{ ref('int_frontier') }}, {{ ref('int_covered_ranges') }}
with

tokens as (

    select
        {{ inputs }}
    from {{ ref('tokens') }}

),

changed as (

    {% if is_incremental_run() and figures is not none -%}
    {{ changed_subjects() }}
    union distinct
    {{ restarted_subjects() }}
    union distinct
    select subject_key
    from (
        select * from tokens
        except
        select
            {{ inputs }}
        from {{ figures }}
    ) as differing
    {%- else -%}
    select subject_key from tokens
    {%- endif %}

),

held as (

    select
        positions.subject_key,
        string_agg(positions.quantity_raw::varchar, ' ') as quantities_raw
    from {{ ref('token_positions') }} as positions
    semi join changed on positions.subject_key = changed.subject_key
    group by positions.subject_key

)

select
    tokens.*,
    held.quantities_raw
from tokens
semi join changed on tokens.subject_key = changed.subject_key
left join held on tokens.subject_key = held.subject_key
