{%- set since = changed_since() -%}
{%- set counting = counting_since(ref('source_prices')) -%}
{%- set known_steps = previous_mart('system_prices') -%}

-- The system price of the changed pairs in steps, from the step before the changed instant on. It is constant between
-- two moments at which a source's price begins or ends to count: the first source that counts then supplies it.
with

changed_pairs as (

    select * from {{ ref('int_changed_pairs') }}

),

source_prices as (

    select * from {{ ref('source_prices') }}
    where state != 'Rejected'

),

-- The newest price of each source before the changed instant, which may still count then.
newest as (

    select
        source_prices.pair_key,
        source_prices.source_id,
        max(source_prices.effective_from) as newest_from
    from source_prices
    inner join changed_pairs on source_prices.pair_key = changed_pairs.pair_key
    where
        source_prices.effective_from >= {{ counting }}
        and source_prices.effective_from < changed_pairs.from_time
    group by source_prices.pair_key, source_prices.source_id

),

prices as (

    select
        source_prices.*,
        changed_pairs.from_time
    from source_prices
    inner join changed_pairs on source_prices.pair_key = changed_pairs.pair_key
    where
        source_prices.effective_from >= {{ since }}
        and source_prices.effective_from >= changed_pairs.from_time

    union all

    select
        source_prices.*,
        changed_pairs.from_time
    from source_prices
    inner join changed_pairs on source_prices.pair_key = changed_pairs.pair_key
    inner join newest
        on
            source_prices.pair_key = newest.pair_key
            and source_prices.source_id = newest.source_id
            and source_prices.effective_from = newest.newest_from
    where source_prices.effective_from >= {{ counting }}

),

used_prices as (

    select * from prices
    where state != 'Quarantined'

),

-- A price counts until its source has a newer one, or until it is too old. A quarantined one blocks its source for as
-- long. Several sources may count at once: each has a bit.
price_intervals as (

    select
        pair_key,
        from_time,
        effective_from as begins,
        least(
            lead(effective_from) over (
                partition by pair_key, position
                order by effective_from
            ),
            fresh_until
        ) as ends,
        case when state = 'Quarantined' then 0::hugeint else 1::hugeint << position end as usable_sources,
        case when state = 'Quarantined' then 1 else 0 end as quarantined_count
    from prices

),

-- An interval that began or ended before the changed instant counts from that instant on.
interval_bounds as (

    select
        pair_key,
        greatest(begins, from_time) as moment,
        usable_sources,
        quarantined_count
    from price_intervals

    union all

    select
        pair_key,
        greatest(ends, from_time) as moment,
        -usable_sources as usable_sources,
        -quarantined_count as quarantined_count
    from price_intervals
    where ends is not null

),

moments as (

    select
        pair_key,
        moment,
        sum(usable_sources) as usable_sources,
        sum(quarantined_count) as quarantined_count
    from interval_bounds
    group by pair_key, moment

),

states as (

    select
        pair_key,
        moment,
        sum(usable_sources) over until_now as usable_sources,
        sum(quarantined_count) over until_now as quarantined_count
    from moments
    window until_now as (
        partition by pair_key
        order by moment
        rows unbounded preceding
    )

),

-- The lowest bit belongs to the first source in the pair's order.
chosen as (

    select
        pair_key,
        moment,
        case
            when usable_sources > 0 then 'Priced'
            when quarantined_count > 0 then 'Quarantined'
            else 'StalePrice'
        end as price_status,
        case when usable_sources > 0 then bit_count((usable_sources & -usable_sources) - 1)::integer end as position
    from states

),

tenants as (

    select
        pair_key,
        tenant_id
    from {{ ref('stg_prices__pairs') }}

),

price_changes as (

    select
        tenants.tenant_id,
        chosen.pair_key,
        chosen.moment as valid_from,
        used_prices.price,
        used_prices.price_text,
        chosen.price_status,
        used_prices.source_id,
        chosen.position,
        chosen.position > 0 as is_fallback,
        used_prices.effective_from,
        used_prices.window_start,
        used_prices.is_partial,
        used_prices.derivation
    from chosen
    inner join tenants on chosen.pair_key = tenants.pair_key
    asof left join used_prices
        on
            chosen.pair_key = used_prices.pair_key
            and chosen.position = used_prices.position
            and chosen.moment >= used_prices.effective_from
    {%- if known_steps is not none %}

    union all

    select
        known.tenant_id,
        known.pair_key,
        known.valid_from,
        known.price,
        known.price_text,
        known.price_status,
        known.source_id,
        known.position,
        known.is_fallback,
        known.effective_from,
        known.window_start,
        known.is_partial,
        known.derivation
    from ({{ changeable_steps(known_steps) }}) as known
    inner join changed_pairs on known.pair_key = changed_pairs.pair_key
    where known.valid_from < changed_pairs.from_time
    {%- endif %}

),

compared as (

    select
        *,
        lag(price_status) over pair as previous_status,
        lag(position) over pair as previous_position,
        lag(effective_from) over pair as previous_effective_from
    from price_changes
    window pair as (
        partition by pair_key
        order by valid_from
    )

),

steps as (

    select
        tenant_id,
        pair_key,
        valid_from,
        lead(valid_from) over (
            partition by pair_key
            order by valid_from
        ) as valid_until,
        price,
        price_text,
        price_status,
        source_id,
        position,
        is_fallback,
        effective_from,
        window_start,
        is_partial,
        derivation
    from compared
    where
        previous_status is null
        or previous_status != price_status
        or previous_position is distinct from position
        or previous_effective_from is distinct from effective_from

)

select * from steps
order by pair_key, valid_from
