{%- set known_steps = previous_mart('system_prices') -%}
{%- set earlier_spans = previous('int_changed_price_spans') -%}
{%- set step = [
    'price_status', 'price', 'source_id', 'position', 'effective_from', 'window_start', 'is_partial', 'derivation'
] | join(', ') -%}

-- Where the system price is otherwise than the marts held it; what a build that ended half-way found (it may have
-- written the new steps already) is kept until one comes to its end, which `since_batch_id` tells.
-- depends_on: {{ ref('int_changed_pairs') }}
with

steps as (

    select * from {{ ref('int_price_steps') }}

),

transforms as (

    select coalesce(max(batch_id), -1) as batch_id
    from {{ ref('stg_pipeline__transforms') }}

),

{% if known_steps is none -%}
changed as (

    select
        pair_key,
        min(valid_from) as from_time,
        null::timestamp as until_time
    from steps
    group by pair_key

),
{%- else -%}
known_steps as (

    {{ changeable_steps(known_steps) }}

),

gone as (

    select
        pair_key,
        valid_from,
        valid_until,
        row({{ step }}) as step
    from (
        select * from known_steps
        except
        select * from steps
    ) as others

),

new as (

    select
        pair_key,
        valid_from,
        valid_until,
        row({{ step }}) as step
    from (
        select * from steps
        except
        select * from known_steps
    ) as others

),

moments as (

    select distinct
        pair_key,
        unnest([valid_from, valid_until]) as moment
    from (
        select * from gone
        union all
        select * from new
    ) as others

),

stretches as (

    select
        pair_key,
        moment as from_time,
        lead(moment) over (
            partition by pair_key
            order by moment
        ) as until_time
    from moments
    where moment is not null

),

compared as (

    select
        stretches.*,
        case when stretches.from_time < coalesce(gone.valid_until, 'infinity') then gone.step end as known_step,
        case when stretches.from_time < coalesce(new.valid_until, 'infinity') then new.step end as step
    from stretches
    asof left join gone
        on
            stretches.pair_key = gone.pair_key
            and stretches.from_time >= gone.valid_from
    asof left join new
        on
            stretches.pair_key = new.pair_key
            and stretches.from_time >= new.valid_from

),

changed as (

    select
        pair_key,
        from_time,
        until_time
    from compared
    where step is distinct from known_step

),
{%- endif %}

recent as (

    select * from changed
    {%- if earlier_spans is not none %}
    union all
    select
        earlier.pair_key,
        earlier.from_time,
        earlier.until_time
    from {{ earlier_spans }} as earlier
    inner join transforms on earlier.since_batch_id = transforms.batch_id
    {%- endif %}

),

marked as (

    select
        *,
        from_time > coalesce(
            max(coalesce(until_time, 'infinity')) over (
                partition by pair_key
                order by from_time, until_time
                rows between unbounded preceding and 1 preceding
            ),
            '-infinity'
        ) as is_first
    from recent

),

numbered as (

    select
        *,
        count_if(is_first) over (
            partition by pair_key
            order by from_time, until_time
            rows unbounded preceding
        ) as span_number
    from marked

),

spans as (

    select
        numbered.pair_key,
        min(numbered.from_time) as from_time,
        nullif(max(coalesce(numbered.until_time, 'infinity')), 'infinity') as until_time,
        any_value(transforms.batch_id) as since_batch_id
    from numbered
    cross join transforms
    group by numbered.pair_key, numbered.span_number

)

select * from spans
