{%- set since = changed_since() -%}
{%- set known_prices = previous_mart('source_prices') -%}

-- Source prices of the changed pairs, from the changed instant on, composed by each pair's route and not yet judged by
-- guards. For guarded pairs it adds, with `known_state`, the prices with which judging begins: the newest price of each
-- source before that instant, and the newest used one.
with

changed_pairs as (

    select * from {{ ref('int_changed_pairs') }}

),

pairs as (

    select
        pairs.*,
        changed_pairs.from_time,
        pairs.max_jump is not null or pairs.max_deviation is not null as is_guarded
    from {{ ref('stg_prices__pairs') }} as pairs
    inner join changed_pairs on pairs.pair_key = changed_pairs.pair_key

),

routes as (

    select * from {{ ref('stg_prices__pair_routes') }}
    where leg_number > 0

),

reviews as (

    select * from {{ ref('stg_prices__reviews') }}

),

legs as (

    select
        routes.*,
        routes.derivation = 'Bridge' as is_bridge,
        pairs.created_at,
        pairs.from_time
    from routes
    inner join pairs on routes.pair_key = pairs.pair_key

),

bridge_legs as (

    select * from legs
    where is_bridge

),

changed_prices as (

    {{ visible_prices('legs', 'prices.effective_from >= ' ~ since ~ ' and prices.effective_from >= legs.from_time') }}

),

-- A leg's price still counts while the other leg's price changes.
earlier_prices as (

    {{
        visible_prices(
            'bridge_legs',
            'prices.effective_from >= ' ~ legs_counting_since() ~ ' and prices.effective_from < legs.from_time',
        )
    }}

),

newest_earlier_prices as (

    select
        pair_key,
        source_id,
        leg_number,
        max(effective_from) as effective_from
    from earlier_prices
    group by pair_key, source_id, leg_number

),

carried_prices as (

    select earlier_prices.*
    from earlier_prices
    semi join newest_earlier_prices as newest
        on
            earlier_prices.pair_key = newest.pair_key
            and earlier_prices.source_id = newest.source_id
            and earlier_prices.leg_number = newest.leg_number
            and earlier_prices.effective_from = newest.effective_from

),

visible as (

    select * from changed_prices
    union all
    select * from carried_prices

),

leg_prices as (

    select
        visible.pair_key,
        visible.source_id,
        visible.leg_number,
        visible.is_bridge,
        visible.from_time,
        visible.effective_from,
        visible.window_start,
        visible.price,
        visible.is_partial,
        case
            when pairs.max_age_seconds is not null
                then make_timestamp(
                    epoch_us(visible.effective_from) + greatest(pairs.max_age_seconds * 1000000, visible.length_us) + 1
                )
        end as fresh_until
    from visible
    inner join pairs on visible.pair_key = pairs.pair_key
    qualify
        row_number() over (
            partition by visible.pair_key, visible.source_id, visible.leg_number, visible.effective_from
            order by visible.length_us asc, visible.precedence desc
        ) = 1

),

moments as (

    select distinct
        pair_key,
        source_id,
        effective_from
    from leg_prices
    where is_bridge and effective_from >= from_time

),

first_legs as (

    select * from leg_prices
    where is_bridge and leg_number = 1

),

second_legs as (

    select * from leg_prices
    where is_bridge and leg_number = 2

),

-- The newest prices of both legs at each moment at which one of them changes. The older one decides how long the result
-- counts; there is none after that.
bridged as (

    select
        moments.pair_key,
        moments.source_id,
        moments.effective_from,
        case
            when
                first_legs.effective_from = second_legs.effective_from
                and first_legs.window_start = second_legs.window_start
                then first_legs.window_start
        end as window_start,
        first_legs.price as first_price,
        second_legs.price as second_price,
        first_legs.is_partial or second_legs.is_partial as is_partial,
        least(first_legs.fresh_until, second_legs.fresh_until) as fresh_until
    from moments
    asof inner join first_legs
        on
            moments.pair_key = first_legs.pair_key
            and moments.source_id = first_legs.source_id
            and moments.effective_from >= first_legs.effective_from
    asof inner join second_legs
        on
            moments.pair_key = second_legs.pair_key
            and moments.source_id = second_legs.source_id
            and moments.effective_from >= second_legs.effective_from
    where moments.effective_from < coalesce(least(first_legs.fresh_until, second_legs.fresh_until), 'infinity')

),

unrouted as (

    select
        pair_key,
        source_id,
        effective_from,
        window_start,
        price as first_price,
        1::decimal(38, 18) as second_price,
        is_partial,
        fresh_until
    from leg_prices
    where not is_bridge

    union all

    select
        pair_key,
        source_id,
        effective_from,
        window_start,
        first_price,
        second_price,
        is_partial,
        fresh_until
    from bridged

),

routed as (

    select
        unrouted.*,
        first_routes.position,
        first_routes.derivation,
        first_routes.is_inverted as first_is_inverted,
        coalesce(second_routes.is_inverted, false) as second_is_inverted
    from unrouted
    inner join routes as first_routes
        on
            unrouted.pair_key = first_routes.pair_key
            and unrouted.source_id = first_routes.source_id
            and first_routes.leg_number = 1
    left join routes as second_routes
        on
            unrouted.pair_key = second_routes.pair_key
            and unrouted.source_id = second_routes.source_id
            and second_routes.leg_number = 2

),

priced as (

    select
        *,
        case
            when derivation != 'Bridge' and not first_is_inverted then {{ price_text('first_price') }}
            else {{ to_rate('first_price', 'first_is_inverted', 'second_price', 'second_is_inverted') }}
        end as price_text
    from routed

),

identified as (

    select
        pairs.tenant_id,
        priced.pair_key,
        priced.source_id,
        priced.position,
        priced.effective_from,
        priced.window_start,
        nullif(try_cast(priced.price_text as decimal(38, 18)), 0) as price,
        priced.price_text,
        priced.is_partial,
        priced.derivation,
        priced.fresh_until,
        'price_' || md5(
            concat_ws(
                '|',
                pairs.pair_id,
                priced.source_id,
                priced.effective_from::varchar,
                coalesce(priced.window_start::varchar, ''),
                priced.price_text
            )
        ) as price_id,
        pairs.is_guarded,
        pairs.max_jump,
        pairs.max_deviation
    from priced
    inner join pairs on priced.pair_key = pairs.pair_key

),

reviewed as (

    select
        identified.*,
        reviews.decision,
        null::varchar as known_state
    from identified
    left join reviews
        on
            identified.pair_key = reviews.pair_key
            and identified.price_id = reviews.price_id

)

select * from reviewed
{% if known_prices is not none -%}
union all
(
    with

    newest as (

        select
            known.pair_key,
            known.source_id,
            max(known.effective_from) as newest_from,
            max(known.effective_from) filter (where known.state != 'Quarantined') as used_from
        from {{ known_prices }} as known
        inner join pairs on known.pair_key = pairs.pair_key
        where
            pairs.is_guarded
            and known.effective_from < pairs.from_time
            and known.state != 'Rejected'
        group by known.pair_key, known.source_id

    )

    select
        known.tenant_id,
        known.pair_key,
        known.source_id,
        known.position,
        known.effective_from,
        known.window_start,
        known.price,
        known.price_text,
        known.is_partial,
        known.derivation,
        known.fresh_until,
        known.price_id,
        pairs.is_guarded,
        pairs.max_jump,
        pairs.max_deviation,
        null as decision,
        known.state as known_state
    from {{ known_prices }} as known
    inner join pairs on known.pair_key = pairs.pair_key
    inner join newest
        on
            known.pair_key = newest.pair_key
            and known.source_id = newest.source_id
            and (known.effective_from = newest.newest_from or known.effective_from = newest.used_from)
)
{%- endif %}
