{%- set points = previous('int_balance_points') -%}
{%- set latest = previous('int_balances_latest') -%}
{%- set earlier_touched = previous('int_touched_balances') -%}
{%- set has_earlier = has_unfinished() -%}

-- Pairs of token and holder whose balances are computed again, from which block on, and what was known at the end of
-- the block before it (is_carried): all that have a point, a movement or a reading at or behind the frontier of their
-- range, and single pairs of which an earlier block was read, or which the tenant may know now, or may not any more.
-- from_block is -1 where the pair starts over. Its rows are deleted from rows_from_block on, and its movements are read
-- from there. Where all that concerns a pair are new readings that agree (is_quiet), the rows of their blocks alone are
-- written, and what is known of its newest balance.
-- depends_on: {{ ref('int_frontier') }}, {{ ref('int_covered_ranges') }}, {{ ref('stg_control__subjects') }}
-- depends_on: {{ ref('int_movements_split_to_legs') }}, {{ ref('int_observations_in_view') }}
-- depends_on: {{ ref('int_addresses') }}, {{ ref('int_wallet_tokens_listed') }}, {{ ref('stg_pipeline__transforms') }}
-- depends_on: {{ ref('int_agreeing_readings') }}, {{ ref('stg_chain__found_holders') }}
{% if not (carries_on() and points is not none and latest is not none) -%}
select
    null::bigint as subject_key,
    null::bigint as range_from_block,
    null::varchar as network,
    null::bigint as balance_key,
    null::bigint as from_block,
    null::bigint as rows_from_block,
    null::bigint as to_block,
    null::boolean as is_known,
    null::boolean as is_stored,
    null::boolean as is_carried,
    null::boolean as is_quiet,
    null::bignum as balance_raw,
    null::varchar as opened_by,
    null::bigint as opening_block,
    null::bigint as first_moved_block,
    null::bigint as moved_block,
    null::bigint as checked_block,
    null::bignum as read_raw,
    null::bigint as reading_count,
    null::bigint as resting_adjustment_count,
    null::bigint as short_adjustment_count,
    null::bigint as ignored_adjustment_count,
    null::bigint as adjustment_count,
    null::bigint as since_batch_id,
    null::varchar as token_address,
    null::varchar as holder_address
where false
{%- else -%}
{%- set ahead = stretches_of(frontier_ranges()) -%}
{%- set first_ahead = ahead | map(attribute='from_block') | min if ahead else last_block() -%}
{%- set replaced_stretches = stretches_of(replaced_ranges(earlier_touched if has_earlier else none)) -%}
with

views as (

    select * from {{ ref('int_covered_ranges') }}

),

frontier as (

    select * from {{ ref('int_frontier') }}

),

observations as not materialized (

    select * from {{ keyed(ref('int_observations_in_view')) }}

),

-- What has no key was neither moved nor read.
listed as (

    select {{ balance_key('listed_tokens.subject_key', 'addresses.address_key') }} as balance_key
    from {{ ref('int_wallet_tokens_listed') }} as listed_tokens
    inner join {{ ref('int_addresses') }} as addresses on listed_tokens.token_address = addresses.address

),

found as (

    select
        {{ balance_key('found_holders.subject_key', 'addresses.address_key') }} as balance_key,
        found_holders.batch_id
    from {{ ref('stg_chain__found_holders') }} as found_holders
    inner join {{ ref('int_addresses') }} as addresses on found_holders.holder_address = addresses.address

),

newly_found_keys as (

    select balance_key
    from found
    where batch_id > {{ transformed_batch() }}

),

-- Where a build did not come to its end, its balances may not be those of its points.
latest as {{ '' if has_earlier else 'not ' }}materialized (

    {% if has_earlier -%}
    {{ latest_of(points) }}
    {%- else -%}
    select * exclude (token_address, holder_address) from {{ latest }}
    {%- endif %}

),

moved as (

    select
        legs.subject_key,
        legs.range_from_block,
        legs.balance_key,
        min(frontier.from_block) as from_block
    from {{ keyed(rows_within(ref('int_movements_split_to_legs'), ahead)) }} as legs
    inner join frontier
        on
            legs.subject_key = frontier.subject_key
            and legs.range_from_block = frontier.range_from_block
            and legs.block_number >= frontier.from_block
    group by legs.subject_key, legs.range_from_block, legs.balance_key

),

new_readings as (

    {{ new_readings() }}

),

agreeing_readings as (

    select * from {{ ref('int_agreeing_readings') }}

),

-- Pairs of which all new readings agree.
agreeing as (

    select
        readings.subject_key,
        readings.range_from_block,
        readings.balance_key,
        -- None, where all these blocks were read before.
        min(readings.block_number) filter (where not agreeing_readings.is_stored) as from_block
    from new_readings as readings
    left join agreeing_readings
        on
            {{ is_same_row('readings', 'agreeing_readings') }}
            and readings.block_number = agreeing_readings.block_number
    group by readings.subject_key, readings.range_from_block, readings.balance_key
    having count(*) = count(agreeing_readings.block_number)

),

-- Readings that the frontier shows now.
read_ahead as ( -- noqa: ST03

    select
        observations.subject_key,
        observations.range_from_block,
        observations.balance_key,
        min(observations.block_number) as from_block
    from {{ keyed(rows_within(ref('int_observations_in_view'), ahead)) }} as observations
    inner join frontier
        on
            observations.subject_key = frontier.subject_key
            and observations.range_from_block = frontier.range_from_block
            and observations.block_number >= frontier.from_block
    group by observations.subject_key, observations.range_from_block, observations.balance_key

),

-- What is at or behind the frontier may be otherwise there, or be gone. Two scans, each skipping what lies before.
unsettled as (

    select
        latest.subject_key,
        latest.range_from_block,
        latest.balance_key,
        frontier.from_block
    from (
        {%- for block in ['moved_block', 'checked_block'] %}
        {{ 'union all' if not loop.first }}
        select
            subject_key,
            range_from_block,
            balance_key,
            {{ block }} as last_block
        from latest
        where {{ block }} >= {{ first_ahead }}
        {%- endfor %}
    ) as latest
    inner join frontier
        on
            latest.subject_key = frontier.subject_key
            and latest.range_from_block = frontier.range_from_block
            and latest.last_block >= frontier.from_block

),

-- What a build that did not come to its end had touched: its later models may still hold it as it was.
unfinished as (

    {% if has_earlier -%}
    select
        earlier.subject_key,
        earlier.range_from_block,
        earlier.balance_key,
        earlier.from_block
    from {{ earlier_touched }} as earlier
    where earlier.since_batch_id = {{ transformed_batch() }}
    {%- else -%}
    select * from moved
    where false
    {%- endif %}

),

-- What the tenant's list shows of wallets, also what never moved: shown for the first time, or not any more.
wallet_views as (

    select * from views
    where kind = 'wallet'

),

of_wallets as materialized (

    select
        latest.range_from_block,
        latest.balance_key,
        latest.first_moved_block
    from latest
    semi join wallet_views on latest.subject_key = wallet_views.subject_key

),

newly_listed as (

    select
        observations.subject_key,
        observations.range_from_block,
        observations.balance_key,
        -1 as from_block
    from observations
    semi join wallet_views on observations.subject_key = wallet_views.subject_key
    semi join listed on observations.balance_key = listed.balance_key
    anti join of_wallets on {{ is_same_row('observations', 'of_wallets') }}

),

-- A holder that was found shows what was read of it before, in every range.
newly_found as (

    select distinct
        observations.subject_key,
        observations.range_from_block,
        observations.balance_key,
        -1 as from_block
    from observations
    semi join newly_found_keys on observations.balance_key = newly_found_keys.balance_key

),

unlisted as (

    select of_wallets.balance_key
    from of_wallets
    anti join listed on of_wallets.balance_key = listed.balance_key
    where of_wallets.first_moved_block is null

),

loud_reasons as (

    select * from moved
    union all
    select * from read_ahead
    union all
    select * from unsettled
    union all
    select * from unfinished
    union all
    select * from newly_listed
    union all
    select * from newly_found

),

quiet as (

    select agreeing.*
    from agreeing
    anti join loud_reasons on agreeing.balance_key = loud_reasons.balance_key
    anti join unlisted on agreeing.balance_key = unlisted.balance_key

),

read as ( -- noqa: ST03

    select * from read_ahead
    union all
    select
        readings.subject_key,
        readings.range_from_block,
        readings.balance_key,
        min(readings.block_number) as from_block
    from new_readings as readings
    anti join quiet on {{ is_same_row('readings', 'quiet') }}
    group by readings.subject_key, readings.range_from_block, readings.balance_key

),

reasons as (

    select * from loud_reasons
    union all
    select * from read

),

concerned as (

    select balance_key
    from reasons
    union distinct
    select balance_key
    from unlisted

),

-- Only where the keys to find have a filter does the scan itself skip other pairs, before it reads their other columns.
concerned_keys as (

    select balance_key from concerned
    where balance_key >= 0

),

-- All ranges of the concerned pairs.
stored as materialized (

    select latest.*
    from latest
    semi join concerned_keys on latest.balance_key = concerned_keys.balance_key

),

quiet_keys as (

    select balance_key from quiet
    where balance_key >= 0

),

quiet_latest as (

    select latest.*
    from latest
    semi join quiet_keys on latest.balance_key = quiet_keys.balance_key

),

-- A pair is known once it moved, in any range of the view: in blocks that are kept, or at or behind the frontier. So is
-- one whose holder was found.
moved_before as (

    select distinct stored.balance_key
    from stored
    left join frontier
        on
            stored.subject_key = frontier.subject_key
            and stored.range_from_block = frontier.range_from_block
    where stored.first_moved_block < coalesce(frontier.from_block, {{ last_block() }})

),

known as (

    select balance_key
    from moved_before
    union distinct
    select balance_key
    from moved
    union distinct
    select concerned.balance_key
    from concerned
    semi join listed on concerned.balance_key = listed.balance_key
    union distinct
    select concerned.balance_key
    from concerned
    semi join found on concerned.balance_key = found.balance_key
    union distinct
    select balance_key
    from concerned
    where {{ keyed_address_key('concerned') }} = {{ supply_key() }}

),

-- A pair that moves for the first time shows what was read of it before, in every range.
newly_moved as (

    select distinct moved.balance_key
    from moved
    anti join moved_before on moved.balance_key = moved_before.balance_key

),

newly_known as (

    select distinct
        observations.subject_key,
        observations.range_from_block,
        observations.balance_key,
        -1 as from_block
    from observations
    semi join newly_moved on observations.balance_key = newly_moved.balance_key

),

-- One that is known no more shows nothing in its other ranges either.
forgotten as (

    select
        stored.subject_key,
        stored.range_from_block,
        stored.balance_key,
        -1 as from_block
    from stored
    anti join known on stored.balance_key = known.balance_key

),

all_reasons as (

    select
        *,
        false as is_unfinished
    from reasons
    union all
    select
        *,
        true as is_unfinished
    from unfinished
    union all
    select
        *,
        false as is_unfinished
    from newly_known
    union all
    select
        *,
        false as is_unfinished
    from forgotten

),

candidates as (

    select
        subject_key,
        range_from_block,
        balance_key,
        min(from_block) as from_block,
        bool_or(is_unfinished) as is_unfinished
    from all_reasons
    group by subject_key, range_from_block, balance_key

),

newly_read as (

    select distinct
        subject_key,
        range_from_block,
        balance_key
    from read

),

described as (

    select
        candidates.*,
        views.network,
        -- Of a range that is cut, what is cut off belongs to it.
        greatest(views.to_block, frontier.to_block) as to_block,
        known.balance_key is not null as is_known,
        coalesce(frontier.from_block, views.to_block + 1) as frontier_block,
        stored.subject_key is not null as has_points,
        stored.balance_raw,
        stored.opened_by,
        stored.opening_block,
        stored.first_moved_block,
        stored.moved_block,
        stored.checked_block,
        stored.read_raw,
        stored.reading_count,
        stored.resting_adjustment_count,
        stored.short_adjustment_count,
        stored.ignored_adjustment_count,
        stored.adjustment_count,
        -- What its balance rests on is not what it was: the opening, or the reading that the opening was derived from.
        known.balance_key is null
        or candidates.from_block < candidates.range_from_block
        or (stored.opened_by is not distinct from 'Derived' and stored.opening_block >= candidates.from_block)
        or (stored.opened_by is null and newly_read.subject_key is not null) as is_starting_over
    from candidates
    inner join views
        on
            candidates.subject_key = views.subject_key
            and candidates.range_from_block = views.from_block
    left join frontier
        on
            candidates.subject_key = frontier.subject_key
            and candidates.range_from_block = frontier.range_from_block
    left join stored on {{ is_same_row('candidates', 'stored') }}
    left join known on candidates.balance_key = known.balance_key
    left join newly_read on {{ is_same_row('candidates', 'newly_read') }}

),

-- Points that are computed again though what is before them is carried on. The first tells what the balance was.
replaced as materialized (

    select
        described.subject_key,
        described.range_from_block,
        described.balance_key,
        any_value(described.from_block) as from_block,
        min_by(
            {
                'is_first': points.is_first,
                'balance_raw': points.balance_raw - points.movement_raw - coalesce(points.adjustment_raw, 0::bignum)
            },
            points.block_number
        ) as state,
        {{ reading_counts('points') }}
    from {{ rows_within(points, replaced_stretches) }} as points
    inner join described
        on
            {{ is_same_row('points', 'described') }}
            and points.block_number >= described.from_block
    where
        not described.is_starting_over
        and greatest(described.moved_block, described.checked_block) >= described.from_block
    group by described.subject_key, described.range_from_block, described.balance_key

),

-- As a list, which the planner takes for one row: it takes the pairs for more than the points, and would hash those.
replaced_keys as (

    select unnest(list(balance_key)) as balance_key from replaced

),

-- And those before them, when it moved and was read last.
kept as (

    select
        replaced.subject_key,
        replaced.range_from_block,
        replaced.balance_key,
        max(points.block_number) filter (where points.is_moved) as moved_block,
        max(points.block_number) filter (where points.observed_raw is not null) as checked_block,
        arg_max(points.observed_raw, points.block_number) as read_raw
    from {{ points }} as points
    semi join replaced_keys on points.balance_key = replaced_keys.balance_key
    inner join replaced
        on
            {{ is_same_row('points', 'replaced') }}
            and points.block_number < replaced.from_block
    group by replaced.subject_key, replaced.range_from_block, replaced.balance_key

),

judged as (

    select
        described.subject_key,
        described.range_from_block,
        described.network,
        described.balance_key,
        described.from_block,
        described.frontier_block,
        described.to_block,
        described.is_known,
        described.is_unfinished,
        described.is_starting_over,
        described.has_points,
        described.balance_raw,
        described.opened_by,
        described.opening_block,
        described.first_moved_block,
        described.moved_block,
        described.checked_block,
        described.read_raw,
        replaced.state,
        kept.moved_block as kept_moved_block,
        kept.checked_block as kept_checked_block,
        kept.read_raw as kept_read_raw,
        {{ combined_counts('described', '-', 'replaced') }},
        described.has_points
        and not described.is_starting_over
        and not coalesce(struct_extract(replaced.state, 'is_first'), false) as is_carried
    from described
    left join replaced on {{ is_same_row('described', 'replaced') }}
    left join kept on {{ is_same_row('described', 'kept') }}

),

-- A reading of a pair that the tenant never saw move is nobody's business here, unless it must be removed.
touched as (

    select
        subject_key,
        range_from_block,
        network,
        balance_key,
        case when is_carried then from_block else -1 end as from_block,
        case
            when not has_points and not is_unfinished then frontier_block
            when is_starting_over or not has_points then -1
            else from_block
        end as rows_from_block,
        to_block,
        is_known,
        has_points or is_unfinished as is_stored,
        is_carried,
        false as is_quiet,
        case when state is null then balance_raw else struct_extract(state, 'balance_raw') end as balance_raw,
        opened_by,
        opening_block,
        case when first_moved_block < from_block then first_moved_block end as first_moved_block,
        case when state is null then moved_block else kept_moved_block end as moved_block,
        case when state is null then checked_block else kept_checked_block end as checked_block,
        case when state is null then read_raw else kept_read_raw end as read_raw,
        reading_count,
        resting_adjustment_count,
        short_adjustment_count,
        ignored_adjustment_count,
        adjustment_count,
        {{ transformed_batch() }} as since_batch_id
    from judged
    where is_known or has_points or is_unfinished

    union all by name

    select
        latest.* replace ({{ transformed_batch() }} as since_batch_id),
        views.network,
        quiet.from_block,
        quiet.from_block as rows_from_block,
        views.to_block,
        true as is_known,
        true as is_stored,
        true as is_carried,
        true as is_quiet
    from quiet_latest as latest
    inner join quiet on {{ is_same_row('latest', 'quiet') }}
    inner join views
        on
            latest.subject_key = views.subject_key
            and latest.range_from_block = views.from_block
    where quiet.from_block is not null

)

select * from {{ named('touched') }} as named
{%- endif %}
