{#
    Valuation of quantities: at the system price in force at a moment, by the pair that the token is linked to. Values depend on facts,
    prices and links; each model writes only those values again that a change of these affects.
#}

{# Currency of values: the Priced In of pairs that value anything. #}
{% macro value_currency() -%}
    'USD'
{%- endmacro %}


{# The earliest instant of a query, as a constant, so that scans skip earlier rows. #}
{% macro earliest(query) -%}
    {%- if execute and not flags.FULL_REFRESH -%}
        {%- set found = run_query(
            "select coalesce(min(at_time), 'infinity')::varchar from (" ~ query ~ ") as instants (at_time)"
        ) -%}
        '{{ found.columns[0].values()[0] }}'::timestamp
    {%- else -%}
        '-infinity'::timestamp
    {%- endif -%}
{%- endmacro %}


{#
    The system price in force at moments: a query for a common table expression. `moments` has distinct (pair_key, at_time), none
    before `since`; a pair without a step yet has a row without a price.
#}
{% macro prices_in_force(moments, since) -%}
    select
        moments.pair_key,
        moments.at_time,
        steps.price,
        steps.price_text,
        coalesce(steps.price_status, 'NoPrice') as price_status,
        steps.effective_from as price_effective_from,
        steps.source_id,
        steps.is_fallback
    from {{ moments }} as moments
    asof left join (
        select system_prices.*
        from {{ ref('system_prices') }} as system_prices
        inner join (
            select
                pair_key,
                min(at_time) as from_time,
                max(at_time) as to_time
            from {{ moments }}
            group by pair_key
        ) as spans
            on
                system_prices.pair_key = spans.pair_key
                and system_prices.valid_from <= spans.to_time
                and coalesce(system_prices.valid_until, 'infinity') > spans.from_time
        where system_prices.valid_until is null or system_prices.valid_until > {{ since }}
    ) as steps
        on
            moments.pair_key = steps.pair_key
            and moments.at_time >= steps.valid_from
{%- endmacro %}


{# The text of a value as BIGNUM of 10^-18. #}
{% macro value_to_units(value) -%}
    (split_part({{ value }}, '.', 1) || rpad(split_part({{ value }}, '.', 2), 18, '0'))::bignum
{%- endmacro %}


{# The status of a quantity's value: priced, or the reason why it has none. Give `quantity` where it can be unknown. #}
{% macro value_status(decimals, pair_key, price_status, quantity=none) -%}
    case
        {%- if quantity %}
        when {{ quantity }} is null then 'NotCovered'
        {%- endif %}
        when {{ decimals }} is null then 'UnknownDecimals'
        when {{ pair_key }} is null then 'NoPair'
        else {{ price_status }}
    end
{%- endmacro %}


{# Deletes values at moments with another price or link than the values were computed with. #}
{% macro delete_changed_values(has_tokens=false) -%}
    {%- set changed_values = ref('int_changed_values') -%}
    {%- if is_appended() -%}
        delete from {{ this }} as written
        using {{ changed_values }} as changed
        where
            written.subject_key = changed.subject_key
            {%- if has_tokens %}
            and written.token_address = changed.token_address
            {%- endif %}
            and written.block_time >= changed.from_time
            and written.block_time < changed.until_time
            and written.block_time >= {{ earliest('select from_time from ' ~ changed_values) }}
    {%- endif -%}
{%- endmacro %}


{# Joins activities derived from readings of the touched pairs; `pair` matches an activity with a touched pair. #}
{% macro semi_join_touched_adjustments(pair) -%}
    semi join {{ ref('int_balances_to_recompute') }} as touched
        on
            activities.subject_key = touched.subject_key
            and {{ pair }}
            and activities.block_number >= touched.from_block
    where activities.transaction_hash is null
{%- endmacro %}


{# Deletes values of activities derived from readings, if these activities were removed or are written again. #}
{% macro delete_touched_values(activities, pair) -%}
    {%- set touched_balances = ref('int_balances_to_recompute') -%}
    {%- set touched_adjustments = semi_join_touched_adjustments(pair) -%}
    {%- set relation = ref(activities) -%}
    {%- if is_appended() -%}
        delete from {{ this }}
        where
            transaction_index = -1
            and subject_key in (select subject_key from {{ touched_balances }})
            and (
                activity_id in (
                    select activities.activity_id from {{ relation }} as activities
                    {{ touched_adjustments }}
                )
                or activity_id not in (
                    select activity_id from {{ relation }}
                    where
                        transaction_hash is null
                        and subject_key in (select subject_key from {{ touched_balances }})
                )
            )
    {%- endif -%}
{%- endmacro %}


{#
    The activities with values to write: all of them, or those that are new or changed, or that have another price or link. A query for
    a common table expression. `columns` are the columns of the activities that the model needs.
#}
{% macro activities_to_value(activities, columns, pair, has_tokens=false) -%}
    {%- set selected -%}
        select
        {%- for column in columns %}
            activities.{{ column }}{{ ',' if not loop.last }}
        {%- endfor %}
        from {{ ref(activities) }} as activities
    {%- endset -%}
    {%- if is_incremental_model() -%}
    {{ selected }}
    semi join {{ ref('int_frontier') }} as frontier
        on {{ is_ahead('activities') }}
    union distinct
    {{ selected }}
    semi join {{ ref('int_changed_values') }} as changed
        on
            activities.subject_key = changed.subject_key
            {%- if has_tokens %}
            and activities.token_address = changed.token_address
            {%- endif %}
            and activities.block_time >= changed.from_time
            and activities.block_time < changed.until_time
    where activities.block_time >= {{ earliest('select from_time from ' ~ ref('int_changed_values')) }}
    union distinct
    {{ selected }}
    {{ semi_join_touched_adjustments(pair) }}
    {%- else -%}
    {{ selected }}
    {%- endif -%}
{%- endmacro %}


{#
    A query for a model: the activities to value, at the system price of their token's pair in force at their block's time. Tokens
    without a pair are omitted. Arguments as above.
#}
{% macro activity_values(activities, columns, pair, has_tokens=false) -%}
    {%- set due = activities_to_value(activities, columns, pair, has_tokens) -%}
with

activities as (

    {{ due }}

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
            {%- if has_tokens %}
            and activities.token_address = token_pairs.token_address
            {%- endif %}

),

moments as (

    select distinct
        pair_key,
        block_time as at_time
    from linked

),

prices as (

    {{ prices_in_force('moments', earliest('select block_time from (' ~ due ~ ') as activities')) }}

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
        case
            when linked.amount_raw is null then 'UnknownAmount'
            else {{ value_status('linked.token_decimals', 'linked.pair_key', 'prices.price_status') }}
        end as value_status
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
    {%- if has_tokens %}
    token_address,
    {%- endif %}
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
order by subject_key, block_number, transaction_index, log_index{{ ', trace_index nulls first' if has_tokens }}
{%- endmacro %}


{# Whether a mart of days has days that are no longer due. The stretches of a range adjoin, so comparing its ends is enough. #}
{% macro has_days_not_due(days) -%}
    {%- set query -%}
        select exists (
            select 1
            from (
                select subject_key, range_from_block, min(day) as first_day, max(day) as last_day
                from {{ days }}
                group by subject_key, range_from_block
            ) as written
            anti join (
                select subject_key, range_from_block, min(first_day) as first_day, max(last_day) as last_day
                from {{ ref('int_value_days') }}
                group by subject_key, range_from_block
            ) as due
                on
                    written.subject_key = due.subject_key
                    and written.range_from_block = due.range_from_block
                    and written.first_day >= due.first_day
                    and written.last_day <= due.last_day
        )
    {%- endset -%}
    {{ return(run_query(query).columns[0].values()[0]) }}
{%- endmacro %}


{#
    Deletes days that are written again or no longer due. Finding the latter takes a comparison of every day, ten times as long as
    finding out that there are none.
#}
{% macro delete_changed_days() -%}
    {%- set value_days = ref('int_value_days') -%}
    {%- if is_appended() and has_days_not_due(this) -%}
        delete from {{ this }} as written
        where not exists (
            select 1 from {{ value_days }} as days
            where
                days.subject_key = written.subject_key
                and days.range_from_block = written.range_from_block
                and written.day between days.first_day and days.last_day
                and not days.is_changed
        )
    {%- elif is_appended() -%}
        delete from {{ this }} as written
        using {{ value_days }} as days
        where
            days.subject_key = written.subject_key
            and days.range_from_block = written.range_from_block
            and written.day between days.first_day and days.last_day
            and days.is_changed
    {%- endif -%}
{%- endmacro %}


{# The last instant of a day, at which it is valued. #}
{% macro end_of_day(day) -%}
    {{ day }} + interval 1 day - interval 1 microsecond
{%- endmacro %}


{#
    Quantities at the ends of days, carried forward from block to block: a query for a common table expression with one row per subject,
    range, series and day that must be written. `changes` has these, block_number, block_time and quantity_raw; `series` may be empty.
#}
{% macro quantities_by_day(changes, series) -%}
    {%- set keys = ['subject_key', 'range_from_block'] + series -%}
    select
        stretches.subject_key,
        stretches.range_from_block,
        {%- for column in series %}
        carried.{{ column }},
        {%- endfor %}
        unnest(generate_series(
            greatest(carried.from_day, stretches.first_day),
            least(coalesce(carried.until_day - 1, stretches.last_day), stretches.last_day),
            interval 1 day
        ))::date as day,
        carried.quantity_raw
    from (
        select
            *,
            lead(from_day) over (
                partition by {{ keys | join(', ') }}
                order by from_day
            ) as until_day
        from (
            select
                {{ keys | join(', ') }},
                block_time::date as from_day,
                arg_max(quantity_raw, block_number) as quantity_raw
            from {{ changes }}
            group by {{ keys | join(', ') }}, from_day
        ) as last_of_day
    ) as carried
    inner join changed_days as stretches
        on
            carried.subject_key = stretches.subject_key
            and carried.range_from_block = stretches.range_from_block
            and carried.from_day <= stretches.last_day
            and coalesce(carried.until_day, 'infinity') > stretches.first_day
{%- endmacro %}


{# Status of a total: Priced if any position is, or without positions; else the first reason that applies. For rows with status. #}
{% macro total_status() -%}
    case
        when count(*) = 0 or count_if(status = 'Priced') > 0 then 'Priced'
        when count_if(status = 'Quarantined') > 0 then 'Quarantined'
        when count_if(status = 'StalePrice') > 0 then 'StalePrice'
        when count_if(status = 'NoPrice') > 0 then 'NoPrice'
        when count_if(status = 'UnknownDecimals') > 0 then 'UnknownDecimals'
        when count_if(status = 'NotCovered') > 0 then 'NotCovered'
        else 'NoPair'
    end
{%- endmacro %}


{# The total value of a wallet's positions; for rows with units (BIGNUM of 10^-18), status and symbol. #}
{% macro total_columns() -%}
    case
        when count(*) = 0 then '0'
        when count_if(status = 'Priced') > 0 then {{ units_to_value("sum(units) filter (where status = 'Priced')") }}
    end as total_value,
    {{ total_status() }} as total_status,
    count_if(status != 'Priced') = 0 as is_complete,
    coalesce(list(symbol order by symbol) filter (where status != 'Priced'), []) as unpriced
{%- endmacro %}


{# The instant before which a row of coverage contains every block since its first: the time of the next block if the chain had one,
   else just after its last block. A row without a last block is a window that no block has reached yet: it begins at an instant, not
   with a block. #}
{% macro held_until_time() -%}
    coalesce(
        lead(case when to_block is not null then from_time end) over (
            partition by subject_key
            order by from_block
        ),
        to_time + interval 1 microsecond
    )
{%- endmacro %}
