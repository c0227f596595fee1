{%- set known_steps = previous_mart('system_prices') -%}
{%- set earlier_spans = previous('int_changed_price_spans') -%}
{%- set step = [
    'price_status', 'price', 'source_id', 'position', 'effective_from', 'window_start', 'is_partial', 'derivation'
] | join(', ') -%}

-- Spans in which the system price differs from that in the marts. An incomplete build may have written the new steps
-- already; its spans are kept until a build is complete, which `since_batch_id` shows.
-- depends_on: {{ ref('int_changed_pairs') }}
with

steps as (

    select
        pair_key,
        valid_from,
        row({{ step }}) as step
    from {{ ref('int_price_steps') }}

),

known_steps as (

    {% if known_steps is not none -%}
    select
        pair_key,
        valid_from,
        row({{ step }}) as step
    from ({{ changeable_steps(known_steps) }}) as known
    {%- else -%}
    select * from steps
    where false
    {%- endif %}

),

step_instants as (

    select
        pair_key,
        valid_from
    from steps
    union distinct
    select
        pair_key,
        valid_from
    from known_steps

),

changed as (

    select
        instants.pair_key,
        instants.valid_from as from_time,
        lead(instants.valid_from) over (
            partition by instants.pair_key
            order by instants.valid_from
        ) as until_time
    from step_instants as instants
    asof left join steps
        on
            instants.pair_key = steps.pair_key
            and instants.valid_from >= steps.valid_from
    asof left join known_steps
        on
            instants.pair_key = known_steps.pair_key
            and instants.valid_from >= known_steps.valid_from
    qualify steps.step is distinct from known_steps.step

),

spans as (

    select * from changed
    {%- if earlier_spans is not none %}
    union distinct
    select
        earlier.pair_key,
        earlier.from_time,
        earlier.until_time
    from {{ earlier_spans }} as earlier
    where earlier.since_batch_id = {{ transformed_batch() }}
    {%- endif %}

)

select
    spans.*,
    {{ transformed_batch() }} as since_batch_id
from spans
