{#
    From raw prices to the system price: exact inverses and cross rates, and updates of the price models at the cost of the changes.
    raw.price_changes contains the effective instant from which a pair must be computed again. Nothing before it can differ, because
    no price looks ahead.
#}

{# A mart of the previous build, or none: the last state of a later model. #}
{% macro previous_mart(name) -%}
    {%- set is_known = execute and not flags.FULL_REFRESH -%}
    {{ return(adapter.get_relation(database='marts_db', schema='marts', identifier=name) if is_known else none) }}
{%- endmacro %}


{# Whether everything is rebuilt. #}
{% macro is_rebuilt() -%}
    {{ 'true' if execute and flags.FULL_REFRESH else 'false' }}
{%- endmacro %}


{#
    The result of a query for one instant, as a constant in the built query: with a constant, scans skip earlier rows; with an instant
    from a join they cannot.
#}
{% macro constant_instant(query) -%}
    {%- if execute -%}
        '{{ run_query(query).columns[0].values()[0] }}'::timestamp
    {%- else -%}
        '-infinity'::timestamp
    {%- endif -%}
{%- endmacro %}


{# The earliest instant from which any pair is computed again; 'infinity' without one. #}
{% macro changed_since() -%}
    {%- set changed_pairs = ref('int_changed_pairs') -%}
    {{ constant_instant("select coalesce(min(from_time), 'infinity')::varchar from " ~ changed_pairs) }}
{%- endmacro %}


{#
    An instant before which no source price in `relation` can count any more when the changed pairs are computed again. If the age of
    prices is not limited, every price can count.
#}
{% macro counting_since(relation) -%}
    {%- set pairs = ref('stg_prices__pairs') -%}
    {%- set changed_pairs = ref('int_changed_pairs') -%}
    {%- set query -%}
        select
            case
                when exists (
                    select 1
                    from {{ pairs }} as pairs
                    semi join {{ changed_pairs }} as changed on pairs.pair_key = changed.pair_key
                    where pairs.max_age_seconds is null
                ) then '-infinity'
                else coalesce(min(effective_from), 'infinity')::varchar
            end
        from {{ relation }}
        where fresh_until >= {{ changed_since() }}
    {%- endset -%}
    {{ constant_instant(query) }}
{%- endmacro %}


{# The same for the legs of bridges. #}
{% macro legs_counting_since() -%}
    {%- set pairs = ref('stg_prices__pairs') -%}
    {%- set routes = ref('stg_prices__pair_routes') -%}
    {%- set windows = ref('stg_prices__pair_windows') -%}
    {%- set changed_pairs = ref('int_changed_pairs') -%}
    {%- set query -%}
        with bridged as (
            select
                pairs.pair_key,
                pairs.max_age_seconds,
                changed.from_time
            from {{ pairs }} as pairs
            inner join {{ changed_pairs }} as changed on pairs.pair_key = changed.pair_key
            semi join (select pair_key from {{ routes }} where derivation = 'Bridge') as routes
                on pairs.pair_key = routes.pair_key
        ),

        lengths as (
            select max(epoch_us(windows.effective_from) - epoch_us(windows.window_start)) as length_us
            from {{ windows }} as windows
            semi join bridged on windows.pair_key = bridged.pair_key
        )

        select
            case
                when count(*) = 0 then 'infinity'
                when count(max_age_seconds) < count(*) or not isfinite(min(from_time)) then '-infinity'
                else make_timestamp(
                    epoch_us(min(from_time))
                    - greatest(max(max_age_seconds) * 1000000, (select length_us from lengths))
                )::varchar
            end
        from bridged
    {%- endset -%}
    {{ constant_instant(query) }}
{%- endmacro %}


{# A price as an integer of 10^-18. #}
{% macro price_units(price) -%}
    replace(({{ price }})::varchar, '.', '')::hugeint
{%- endmacro %}


{# A price as canonical decimal text. #}
{% macro price_text(price) -%}
    rtrim(rtrim(({{ price }})::varchar, '0'), '.')
{%- endmacro %}


{#
    10^18 * numerator / denominator of two positive integers (names), rounded half to even, as BIGNUM. In HUGEINT, nine digits at
    a time, where remainders and the result fit; else long division.
#}
{% macro rate_units(numerator, denominator) -%}
    {%- set long -%}
        {{
            let('numerator_digits', numerator ~ "::varchar || repeat('0', 18)",
            let('denominator_digits', denominator ~ "::varchar",
            long_quotient('numerator_digits', 'denominator_digits')))
        }}
    {%- endset -%}
    {%- set rounded -%}
        (
            quotient + case
                when remainder + remainder > {{ denominator }} then 1
                when remainder + remainder < {{ denominator }} then 0
                else quotient % 2
            end
        )::varchar::bignum
    {%- endset -%}
    {%- set divided -%}
        {{
            let('dividend', "(" ~ numerator ~ " - whole * " ~ denominator ~ ") * 1000000000",
            let('digits', "dividend // " ~ denominator,
            let('rest', "(dividend - digits * " ~ denominator ~ ") * 1000000000",
            let('last_digits', "rest // " ~ denominator,
            let('remainder', "rest - last_digits * " ~ denominator,
            let('quotient', "(whole * 1000000000 + digits) * 1000000000 + last_digits", rounded))))))
        }}
    {%- endset -%}
    {%- set chosen -%}
        case
            when
                {{ denominator }} < 100000000000000000000000000000
                and whole < 10000000000000000000
                then {{ divided }}
            else {{ long }}
        end
    {%- endset -%}
    {{ let('whole', numerator ~ " // " ~ denominator, chosen) }}
{%- endmacro %}


{#
    The result of one or two legs: the price, its inverse, or a cross rate of both, each leg direct or inverted. Rounded once, half to
    even, to 18 decimals. A single leg has a second one of price 1.
#}
{% macro rate_body(first_price, first_is_inverted, second_price, second_is_inverted) -%}
    {%- set both_inverted -%}
        {{
            let('product', value_units_body('first_units::varchar::bignum', '0', second_price),
            let('product_digits', 'product::varchar',
            let('one_digits', "'1' || repeat('0', 54)",
            long_quotient('one_digits', 'product_digits'))))
        }}
    {%- endset -%}
    {%- set units -%}
        case
            when {{ first_is_inverted }} and {{ second_is_inverted }} then {{ both_inverted }}
            when {{ first_is_inverted }} then {{ rate_units('second_units', 'first_units') }}
            when {{ second_is_inverted }} then {{ rate_units('first_units', 'second_units') }}
            else {{ value_units_body('first_units::varchar::bignum', '18', second_price) }}
        end
    {%- endset -%}
    {{
        let('first_units', price_units(first_price),
        let('second_units', price_units(second_price),
        let('units', units, shifted_digits('units', 18))))
    }}
{%- endmacro %}


{# As canonical decimal text; any number of digits before the point. #}
{% macro to_rate(first_price, first_is_inverted, second_price, second_is_inverted) -%}
    marts_db.marts.to_rate({{ first_price }}, {{ first_is_inverted }}, {{ second_price }}, {{ second_is_inverted }})
{%- endmacro %}


{# Run before every build, after the functions of exact_numbers.sql. #}
{% macro create_price_functions() -%}
    create or replace macro marts_db.marts.to_rate(
        first_price, first_is_inverted, second_price, second_is_inverted
    ) as
    {{ rate_body('first_price', 'first_is_inverted', 'second_price', 'second_is_inverted') }};
    comment on macro marts_db.marts.to_rate is
    'Product of two prices, each inverted or not, as decimal text, half to even to 18 decimals. Unit: Priced In per Priced As.';
{%- endmacro %}


{#
    Prices that legs' tenants may see and that meet `condition`, as polled, of own windows, or manual; a query for a common table
    expression. `length_us` is the length of the window. Of several prices for one instant, the shortest window counts, then the
    greatest `precedence` (newest revision, else newest collected).
#}
{% macro visible_prices(legs, condition) -%}
    select
        legs.pair_key,
        legs.source_id,
        legs.leg_number,
        legs.is_bridge,
        legs.from_time,
        prices.effective_from,
        prices.window_start,
        coalesce(epoch_us(prices.effective_from) - epoch_us(prices.window_start), 0) as length_us,
        epoch_us(prices.last_collected_at) as precedence,
        prices.price,
        prices.is_partial
    from {{ ref('stg_prices__market_prices') }} as prices
    inner join {{ legs }} as legs
        on
            prices.source_id = legs.source_id
            and prices.market_id = legs.market_id
            and prices.price_type = legs.price_type
    where
        prices.origin = 'Poll'
        and prices.last_collected_at >= legs.created_at
        and {{ condition }}

    union all

    select
        legs.pair_key,
        legs.source_id,
        legs.leg_number,
        legs.is_bridge,
        legs.from_time,
        prices.effective_from,
        -- A window without length was polled in the shard from which the tenant moved.
        nullif(prices.window_start, prices.effective_from) as window_start,
        epoch_us(prices.effective_from) - epoch_us(prices.window_start) as length_us,
        epoch_us(prices.last_collected_at) as precedence,
        prices.price,
        prices.is_partial
    from {{ ref('stg_prices__market_prices') }} as prices
    inner join {{ ref('stg_prices__pair_windows') }} as windows
        on
            prices.source_id = windows.source_id
            and prices.market_id = windows.market_id
            and prices.price_type = windows.price_type
            and prices.window_start = windows.window_start
            and prices.effective_from = windows.effective_from
    inner join {{ legs }} as legs
        on
            windows.pair_key = legs.pair_key
            and windows.source_id = legs.source_id
            and windows.market_id = legs.market_id
            and windows.price_type = legs.price_type
    where
        {{ condition }}
        and {{ condition | replace('prices.', 'windows.') }}

    union all

    select
        legs.pair_key,
        legs.source_id,
        legs.leg_number,
        legs.is_bridge,
        legs.from_time,
        prices.effective_from,
        null::timestamp as window_start,
        0 as length_us,
        prices.revision as precedence,
        prices.price,
        false as is_partial
    from {{ ref('stg_prices__manual_prices') }} as prices
    inner join {{ legs }} as legs on prices.supported_pair_key = legs.supported_pair_key
    where {{ condition }}
{%- endmacro %}


{# The composed prices with the results of guards and reviews: the columns of source_prices. #}
{% macro judged_prices() -%}
    select
        composed.tenant_id,
        composed.pair_key,
        composed.source_id,
        composed.position,
        composed.effective_from,
        composed.window_start,
        composed.price,
        composed.price_text,
        composed.is_partial,
        composed.derivation,
        composed.fresh_until,
        case
            when composed.decision = 'Rejected' then 'Rejected'
            when composed.price is null then 'Quarantined'
            when composed.decision = 'Accepted' then 'Accepted'
            when stopped.reason is not null then 'Quarantined'
            else 'Used'
        end as state,
        case when composed.price is null then 'OutOfRange' else stopped.reason end as reason,
        composed.price_id
    from {{ ref('int_composed_prices') }} as composed
    left join {{ ref('int_stopped_prices') }} as stopped
        on
            composed.pair_key = stopped.pair_key
            and composed.source_id = stopped.source_id
            and composed.effective_from = stopped.effective_from
    where composed.known_state is null
{%- endmacro %}


{# Deletes rows of pairs that are no longer configured. #}
{% macro delete_removed_pairs() -%}
    {%- set pairs = ref('stg_prices__pairs') -%}
    {%- if is_appended() -%}
        delete from {{ this }}
        where pair_key not in (select pair_key from {{ pairs }})
    {%- endif -%}
{%- endmacro %}


{# Source prices of the changed pairs in `relation`, from the changed instant on. A query. #}
{% macro changeable_source_prices(relation) -%}
    select known.*
    from {{ relation }} as known
    inner join {{ ref('int_changed_pairs') }} as changed
        on
            known.pair_key = changed.pair_key
            and known.effective_from >= changed.from_time
    where known.effective_from >= {{ changed_since() }}
{%- endmacro %}


{# Deletes source prices that were removed or changed. #}
{% macro delete_other_source_prices() -%}
    {%- set changeable = changeable_source_prices(this) -%}
    {%- set judged = judged_prices() -%}
    {%- if is_appended() -%}
        delete from {{ this }} as written
        using (
            {{ changeable }}
            except
            {{ judged }}
        ) as others
        where
            written.pair_key = others.pair_key
            and written.source_id = others.source_id
            and written.effective_from = others.effective_from
    {%- endif -%}
{%- endmacro %}


{#
    Steps of the changed pairs in `relation`, from the one before the changed instant on. A query in two parts, because scans skip rows
    by one bound only.
#}
{% macro changeable_steps(relation) -%}
    select known.*
    from {{ relation }} as known
    inner join {{ ref('int_changed_pairs') }} as changed
        on
            known.pair_key = changed.pair_key
            and known.valid_until >= changed.from_time
    where known.valid_until >= {{ changed_since() }}
    union all
    select known.*
    from {{ relation }} as known
    inner join {{ ref('int_changed_pairs') }} as changed on known.pair_key = changed.pair_key
    where known.valid_until is null
{%- endmacro %}


{# Deletes steps that were removed or changed. #}
{% macro delete_other_steps() -%}
    {%- set changeable = changeable_steps(this) -%}
    {%- set steps = ref('int_price_steps') -%}
    {%- if is_appended() -%}
        delete from {{ this }} as written
        using (
            ({{ changeable }})
            except
            select * from {{ steps }}
        ) as others
        where
            written.pair_key = others.pair_key
            and written.valid_from = others.valid_from
    {%- endif -%}
{%- endmacro %}
