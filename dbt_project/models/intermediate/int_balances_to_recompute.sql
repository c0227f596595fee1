{%- set points = previous('int_balance_points') -%}
{%- set latest = previous('int_balances_latest') -%}

-- Balances that are computed again, one row per covered range, token and holder. Each has the first block to compute,
-- whether the tenant may know the balance, and the state before, from which the computation continues.
-- depends_on: {{ ref('int_balance_reasons') }}, {{ ref('int_covered_ranges') }}, {{ ref('int_frontier') }}
-- depends_on: {{ ref('int_visible_readings') }}, {{ ref('int_addresses') }}, {{ ref('int_wallet_tokens_listed') }}
-- depends_on: {{ ref('stg_chain__found_holders') }}, {{ ref('stg_pipeline__transforms') }}
-- depends_on: {{ ref('stg_control__subjects') }}
{% if not keeps_balances() -%}
select
    null::bigint as subject_key,
    null::bigint as range_from_block,
    null::varchar as network,
    null::bigint as balance_key,
    null::bigint as from_block,
    null::bigint as to_block,
    null::boolean as is_known,
    null::boolean as is_quiet,
    null::boolean as is_carried,
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
with

views as (

    select * from {{ ref('int_covered_ranges') }}

),

frontier as (

    select * from {{ ref('int_frontier') }}

),

reasons as (

    select * from {{ ref('int_balance_reasons') }}

),

-- From the last build.
latest as not materialized (

    select * exclude (token_address, holder_address) from {{ latest }}

),

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

wallet_views as (

    select * from views
    where kind = 'wallet'

),

of_wallets as materialized (

    select
        latest.balance_key,
        latest.first_moved_block
    from latest
    semi join wallet_views on latest.subject_key = wallet_views.subject_key

),

-- Balances with a reason, and those that may have become known or unknown.
affected_pairs as (

    select balance_key
    from reasons
    union distinct
    select listed.balance_key
    from listed
    anti join of_wallets on listed.balance_key = of_wallets.balance_key
    union distinct
    select of_wallets.balance_key
    from of_wallets
    anti join listed on of_wallets.balance_key = listed.balance_key
    where of_wallets.first_moved_block is null
    union distinct
    select balance_key
    from found
    where batch_id > {{ transformed_batch() }}

),

-- With a filter on the keys, the scan skips the other balances before it reads their other columns.
affected_keys as (

    select balance_key from affected_pairs
    where balance_key >= 0

),

-- In all ranges.
stored as materialized (

    select latest.*
    from latest
    semi join affected_keys on latest.balance_key = affected_keys.balance_key

),

-- The tenant may know balances that moved in a range of its view. It may also know those of listed tokens and of found
-- holders, and supplies.
known as (

    select stored.balance_key
    from stored
    left join frontier
        on
            stored.subject_key = frontier.subject_key
            and stored.range_from_block = frontier.range_from_block
    where stored.first_moved_block < coalesce(frontier.from_block, {{ last_block() }})
    union distinct
    select balance_key
    from reasons
    where reason = 'Moved'
    union distinct
    select affected_pairs.balance_key
    from affected_pairs
    semi join listed on affected_pairs.balance_key = listed.balance_key
    union distinct
    select affected_pairs.balance_key
    from affected_pairs
    semi join found on affected_pairs.balance_key = found.balance_key
    union distinct
    select balance_key
    from affected_pairs
    where {{ keyed_address_key('affected_pairs') }} = {{ supply_key() }}

),

newly_known as (

    select known.balance_key
    from known
    anti join stored on known.balance_key = stored.balance_key

),

-- All readings of a balance that became known are shown; a balance that is no longer known has no rows.
all_reasons as (

    select * from reasons
    union all by name
    select
        observations.range_from_block,
        observations.balance_key,
        observations.block_number as from_block,
        'Known' as reason,
        false as is_quiet
    from {{ keyed(ref('int_visible_readings')) }} as observations
    semi join newly_known on observations.balance_key = newly_known.balance_key
    union all by name
    select
        stored.range_from_block,
        stored.balance_key,
        -1 as from_block,
        'Unknown' as reason,
        false as is_quiet
    from stored
    anti join known on stored.balance_key = known.balance_key

),

candidates as (

    select
        balance_key // {{ address_keys() }} as subject_key,
        range_from_block,
        balance_key,
        min(from_block) as from_block,
        bool_or(reason = 'Read') as is_read,
        bool_or(reason = 'Unfinished') as is_unfinished,
        bool_and(is_quiet) as is_quiet
    from all_reasons
    group by range_from_block, balance_key

),

-- Readings of an unknown balance without stored rows are omitted.
described as (

    select
        candidates.*,
        views.network,
        -- A range that became shorter ends at its earlier end.
        greatest(views.to_block, frontier.to_block) as to_block,
        known.balance_key is not null as is_known,
        stored.balance_key is not null or candidates.is_unfinished as may_be_stored,
        coalesce(
            not candidates.is_unfinished
            and candidates.from_block > greatest(stored.moved_block, stored.checked_block),
            false
        ) as is_after_newest
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
    where
        known.balance_key is not null
        or stored.balance_key is not null
        or candidates.is_unfinished

),

-- The state before comes from the newest balance where only newer blocks are computed, else from the points.
reopened as (

    select * from described
    where
        may_be_stored
        and not is_after_newest

),

points_before as ( -- noqa: ST03

    select points.*
    from {{ points_of('reopened', points) }} as points
    inner join reopened
        on
            {{ is_same_row('points', 'reopened') }}
            and points.block_number < reopened.from_block

),

states as (

    select stored.*
    from stored
    semi join described
        on
            {{ is_same_row('stored', 'described') }}
            and described.is_after_newest
    union all by name
    {{ latest_of('points_before') }}

),

-- A balance starts over where its opening may differ, or the reading that the opening was derived from.
decided as (

    select
        described.*,
        states.* exclude (subject_key, range_from_block, balance_key, since_batch_id), -- noqa: RF02
        not described.is_known
        or coalesce(states.opened_by = 'Derived' and states.opening_block >= described.from_block, false)
        or (states.balance_key is not null and states.opened_by is null and described.is_read) as is_starting_over,
        states.balance_key is not null and not is_starting_over as is_carried
    from described
    left join states on {{ is_same_row('described', 'states') }}

),

touched as (

    select
        * exclude (is_read, is_unfinished, may_be_stored, is_after_newest, is_starting_over)
        replace (case when is_starting_over then -1 else from_block end as from_block),
        {{ transformed_batch() }} as since_batch_id
    from decided

)

select * from {{ named('touched') }} as named
{%- endif %}
