{%- set transformed_pairs = previous('int_token_pairs_transformed') -%}
{%- set earlier_changes = previous('int_changed_values') -%}

-- Moments at which values in the marts are outdated: the price changed then, or the token's link or decimals did, which
-- concerns all times. An incomplete build may have used its changes already; they are kept until a build is complete,
-- which `since_batch_id` shows.
with

token_pairs as (

    select * from {{ ref('token_pairs') }}

),

changed_spans as (

    select * from {{ ref('int_changed_price_spans') }}

),

subjects as (

    select * from {{ ref('stg_control__subjects') }}

),

repriced as (

    select
        token_pairs.subject_key,
        token_pairs.token_address,
        changed_spans.from_time,
        coalesce(changed_spans.until_time, 'infinity') as until_time
    from token_pairs
    inner join changed_spans on token_pairs.pair_key = changed_spans.pair_key

),

relinked as (

    {% if transformed_pairs is not none -%}
    select
        coalesce(token_pairs.subject_key, transformed.subject_key) as subject_key,
        coalesce(token_pairs.token_address, transformed.token_address) as token_address,
        '-infinity'::timestamp as from_time,
        'infinity'::timestamp as until_time
    from token_pairs
    full outer join {{ transformed_pairs }} as transformed
        on
            token_pairs.subject_key = transformed.subject_key
            and token_pairs.token_address = transformed.token_address
    where
        token_pairs.pair_key is distinct from transformed.pair_key
        or token_pairs.token_decimals is distinct from transformed.token_decimals
    {%- else -%}
    select
        subject_key,
        token_address,
        '-infinity'::timestamp as from_time,
        'infinity'::timestamp as until_time
    from token_pairs
    {%- endif %}

),

recent as (

    select * from repriced
    union distinct
    select * from relinked
    {%- if earlier_changes is not none %}
    union distinct
    select
        earlier.subject_key,
        earlier.token_address,
        earlier.from_time,
        earlier.until_time
    from {{ earlier_changes }} as earlier
    where earlier.since_batch_id = {{ transformed_batch() }}
    {%- endif %}

),

final as (

    select
        recent.*,
        {{ transformed_batch() }} as since_batch_id
    from recent
    semi join subjects on recent.subject_key = subjects.subject_key

)

select * from final
