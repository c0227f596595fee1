{#
    How appended tables are updated at the cost of the changes: docs/adr/0004-changes.md. In one transaction, a model deletes in pre-hooks
    the rows that are computed again, and appends them.
#}

{# Beyond any block number. #}
{% macro last_block() -%}
    9223372036854775807
{%- endmacro %}


{# The pseudo-holder whose balance is a token's total supply: mints and burns move it, and it is read like any other. #}
{% macro supply_holder() -%}
    'supply'
{%- endmacro %}


{# An intermediate table of the previous build, or none: the last state of a later model. #}
{% macro previous(name) -%}
    {%- set is_known = execute and not flags.FULL_REFRESH -%}
    {{ return(adapter.get_relation(database=target.database, schema='intermediate', identifier=name) if is_known else none) }}
{%- endmacro %}


{# Whether this build continues an earlier complete one. The same for all models, because it depends on the model built last. #}
{% macro is_incremental_run() -%}
    {{ return(previous('int_views_transformed') is not none) }}
{%- endmacro %}


{# Readings since the last complete build, one per pair and block; a query for a common table expression. #}
{% macro new_readings() -%}
    select
        readings.subject_key,
        readings.range_from_block,
        readings.balance_key,
        readings.block_number,
        arg_max(readings.quantity_raw, readings.batch_id) as observed_raw
    from {{ keyed(ref('int_visible_readings')) }} as readings
    where {{ is_newly_visible('readings') }}
    group by readings.subject_key, readings.range_from_block, readings.balance_key, readings.block_number
{%- endmacro %}


{# Whether a model keeps its rows, except those that are computed again. #}
{% macro is_incremental_model() -%}
    {{ return(is_appended() and is_incremental_run()) }}
{%- endmacro %}


{# Whether balances of the last complete build are kept, except those that are computed again. #}
{% macro keeps_balances() -%}
    {{ return(
        is_incremental_run() and previous('int_balance_points') is not none and previous('int_balances_latest') is not none
    ) }}
{%- endmacro %}


{# The newest batch in the marts: that of the last complete build. #}
{% macro transformed_batch() -%}
    (select coalesce(max(batch_id), -1) from {{ ref('stg_pipeline__transforms') }})
{%- endmacro %}


{# One more than an address key may be. #}
{% macro address_keys() -%}
    4294967296
{%- endmacro %}


{#
    The key of a pair of token and holder of a subject, one integer: the subject's key and that of the other address, which is the holder
    for a token and the token for a wallet.
#}
{% macro balance_key(subject_key, address_key) -%}
    {{ subject_key }} * {{ address_keys() }} + {{ address_key }}
{%- endmacro %}


{# The key that represents the supply among the keys of addresses. #}
{% macro supply_key() -%}
    0
{%- endmacro %}


{# The key that represents the native asset. #}
{% macro native_key() -%}
    1
{%- endmacro %}


{# The key of the address in a balance key. #}
{% macro keyed_address_key(balances) -%}
    {{ balances }}.balance_key % {{ address_keys() }}
{%- endmacro %}


{# Legs or readings with the keys of their balances; every address has one (a test). Rows without a row in `addresses` are omitted. #}
{% macro keyed(rows, addresses=ref('int_addresses')) -%}
    (
        select
            rows.*,
            {{ balance_key('rows.subject_key', 'addresses.address_key') }} as balance_key
        from {{ rows }} as rows
        inner join {{ addresses }} as addresses on rows.keyed_address = addresses.address
    )
{%- endmacro %}


{# Rows with subject_key and balance_key, with the token and the holder as text. #}
{% macro named(rows) -%}
    (
        select
            rows.*,
            case subjects.kind when 'token' then subjects.address else addresses.address end as token_address,
            case subjects.kind when 'token' then addresses.address else subjects.address end as holder_address
        from {{ rows }} as rows
        inner join {{ ref('stg_control__subjects') }} as subjects on rows.subject_key = subjects.subject_key
        inner join {{ ref('int_addresses') }} as addresses on {{ keyed_address_key('rows') }} = addresses.address_key
    )
{%- endmacro %}


{# Whether rows of two relations belong to the same pair in the same covered range. #}
{% macro is_same_row(one, other) -%}
    {{ one }}.balance_key = {{ other }}.balance_key
    and {{ one }}.range_from_block = {{ other }}.range_from_block
{%- endmacro %}


{#
    Bounds for reading or deleting rows, per network: the newest three stretches of the (network, from_block, to_block) of a query, and
    one stretch that spans all before them. They are few, because each is a separate scan.
#}
{% macro stretches_of(query) -%}
    {%- set stretches -%}
        with marked as (
            select
                *,
                from_block - 1 > coalesce(
                    max(to_block) over (
                        partition by network
                        order by from_block, to_block
                        rows between unbounded preceding and 1 preceding
                    ),
                    -3
                ) as is_first
            from ({{ query }}) as ranges
        ),

        numbered as (
            select
                *,
                count_if(is_first) over (partition by network) - count_if(is_first) over (
                    partition by network
                    order by from_block, to_block
                    rows unbounded preceding
                ) as newer
            from marked
        )

        select network, min(from_block) as from_block, max(to_block) as to_block
        from numbered
        group by network, least(newer, 3)
        order by network, from_block
    {%- endset -%}
    {{ return(run_query(stretches).rows if execute else []) }}
{%- endmacro %}


{# The ranges of the frontier, for stretches_of. #}
{% macro frontier_ranges() -%}
    select
        subjects.network,
        frontier.from_block,
        frontier.to_block
    from {{ ref('int_frontier') }} as frontier
    inner join {{ ref('stg_control__subjects') }} as subjects on frontier.subject_key = subjects.subject_key
{%- endmacro %}


{# The ranges in which touched pairs are computed again, for stretches_of. #}
{% macro touched_ranges() -%}
    select distinct
        network,
        from_block,
        to_block
    from {{ ref('int_balances_to_recompute') }}
{%- endmacro %}


{# Whether a reading became visible to the tenant since the last build; its newest batch lets the scan skip other readings. #}
{% macro is_newly_visible(observations) -%}
    {{ observations }}.batch_id > {{ transformed_batch() }}
    and {{ observations }}.visible_since_batch_id > {{ transformed_batch() }}
{%- endmacro %}


{#
    The rows of a relation with network and block_number that are in stretches, each with constants, so that the scan skips rows outside
    of them. The caller must still join the exact ranges.
#}
{% macro rows_within(relation, stretches) -%}
    (
        select * from {{ relation }}
        where false
        {%- for network, from_block, to_block in stretches %}
        union all
        select * from {{ relation }}
        where network = {{ text_literal(network) }} and block_number between {{ from_block }} and {{ to_block }}
        {%- endfor %}
    )
{%- endmacro %}


{# The rows of a relation with network and block_number that may be at or after the frontier. The caller must still join it. #}
{% macro rows_ahead(relation) -%}
    {%- set ranges = frontier_ranges() -%}
    {{ rows_within(relation, stretches_of(ranges)) if is_incremental_model() else relation }}
{%- endmacro %}


{# Whether a row is in the stretch of blocks that is written; true for every row if the query runs on its own. #}
{% macro is_in_stretch(rows) -%}
    {{ rows }}.block_number between
        coalesce(getvariable('from_block'), -1) and coalesce(getvariable('to_block'), {{ last_block() }})
{%- endmacro %}


{# Whether an address is in the share that is written; true for every address if the query runs on its own. #}
{% macro is_in_share(addresses) -%}
    {{ addresses }}.address_key % coalesce(getvariable('shares'), 1) = coalesce(getvariable('share'), 0)
{%- endmacro %}


{# The sum of legs with keys in each block; a query for a common table expression. #}
{% macro moved_in_blocks(legs) -%}
    select
        legs.subject_key,
        legs.range_from_block,
        legs.balance_key,
        legs.block_number,
        sum(legs.movement_raw) as movement_raw
    from {{ legs }} as legs
    group by legs.subject_key, legs.range_from_block, legs.balance_key, legs.block_number
{%- endmacro %}


{# Whether a written row belongs to the touched pair. #}
{% macro is_touched_pair() -%}
    written.token_address = touched.token_address and written.holder_address = touched.holder_address
{%- endmacro %}


{#
    Deletes the rows at or after the frontier of a model with rows per range and pair: of ranges that were removed or are computed from
    their beginning, and of touched pairs from the first block that is computed again. `pair` matches a written row with a touched pair.
#}
{% macro delete_from_frontier(pair=is_touched_pair()) -%}
    {%- set touched = ref('int_balances_to_recompute') -%}
    {{ delete_whole_ranges() }}
    {%- if is_incremental_model() -%}
    {%- for network, from_block, to_block in stretches_of(touched_ranges()) %}
        delete from {{ this }} as written
        using {{ touched }} as touched
        where
            written.subject_key = touched.subject_key
            and written.range_from_block = touched.range_from_block
            and {{ pair }}
            and touched.network = {{ text_literal(network) }}
            and written.block_number >= touched.from_block
            and written.block_number between {{ from_block }} and {{ to_block }};
    {%- endfor %}
    {%- endif -%}
{%- endmacro %}


{# Deletes ranges that were removed or are computed from their beginning; everything, if there was no complete build. #}
{% macro delete_whole_ranges() -%}
    {%- set frontier = ref('int_frontier') -%}
    {%- if is_incremental_model() -%}
        delete from {{ this }} as written
        using {{ frontier }} as frontier
        where
            written.subject_key = frontier.subject_key
            and written.range_from_block = frontier.range_from_block
            and frontier.from_block = -1;
    {%- elif is_appended() -%}
        delete from {{ this }};
    {%- endif -%}
{%- endmacro %}


{# The same for a model with one row per pair and its key; all rows of touched pairs are written again. #}
{% macro delete_touched_pairs() -%}
    {%- set touched_balances = ref('int_balances_to_recompute') -%}
    {{ delete_whole_ranges() }}
    {%- if is_incremental_model() -%}
        delete from {{ this }} as written
        using {{ touched_balances }} as touched
        where
            {{ is_same_row('written', 'touched') }};
    {%- endif -%}
{%- endmacro %}


{#
    Subjects with all pairs written again, as a query: the newest covered range differs from the one in the marts, or a range is computed
    from its beginning.
#}
{% macro restarted_subjects() -%}
    {%- set held -%}
        select
            subject_key,
            max(from_block) as from_block
        from {{ previous('int_views_transformed') }}
        where not is_native
        group by subject_key
    {%- endset -%}
    {%- set current -%}
        select
            subject_key,
            from_block
        from {{ ref('int_covered_ranges') }}
        where is_as_of
    {%- endset -%}
    select subject_key from (({{ held }}) except ({{ current }}))
    union distinct
    select subject_key from (({{ current }}) except ({{ held }}))
    union distinct
    select subject_key from {{ ref('int_frontier') }}
    where from_block = -1
{%- endmacro %}


{#
    Deletes the rows that are written again of a model with the pairs of each subject's newest range. The columns of a pair depend on
    readings in all ranges.
#}
{% macro delete_touched_holders() -%}
    {%- if is_incremental_model() -%}
        delete from {{ this }} as written
        using ({{ restarted_subjects() }}) as restarted
        where written.subject_key = restarted.subject_key;
        delete from {{ this }} as written
        using (select distinct subject_key, holder_address from {{ ref('int_balances_to_recompute') }}) as touched
        where
            written.subject_key = touched.subject_key
            and written.holder_address = touched.holder_address;
    {%- elif is_appended() -%}
        delete from {{ this }};
    {%- endif -%}
{%- endmacro %}


{#
    All points of the balances of a common table expression. Their keys are a list, because the planner estimates a list as one row;
    otherwise it would hash the points.
#}
{% macro points_of(balances, points) -%}
    (
        select points.*
        from {{ points }} as points
        semi join (
            select unnest(list(balance_key)) as balance_key from {{ balances }}
        ) as found on points.balance_key = found.balance_key
    )
{%- endmacro %}


{# Whether rows of a covered range are at or after its frontier. #}
{% macro is_at_frontier(rows) -%}
    {{ rows }}.subject_key = frontier.subject_key
    and {{ rows }}.range_from_block = frontier.range_from_block
    and {{ rows }}.block_number >= frontier.from_block
{%- endmacro %}


{# Whether an activity, which belongs to a subject but not to a range, is at or after the frontier. #}
{% macro is_ahead(activities) -%}
    {{ activities }}.subject_key = frontier.subject_key
    and {{ activities }}.block_number >= frontier.from_block
    and {{ activities }}.block_number between frontier.range_from_block and frontier.to_block
{%- endmacro %}


{# Deletes rows of subjects that are no longer configured. #}
{% macro delete_removed_subjects() -%}
    {%- set subjects = ref('stg_control__subjects') -%}
    {%- if is_appended() -%}
        delete from {{ this }}
        where subject_key not in (select subject_key from {{ subjects }});
    {%- endif -%}
{%- endmacro %}


{# Deletes activities that are at or after the frontier, or of subjects that are no longer configured. #}
{% macro delete_ahead() -%}
    {%- set frontier = ref('int_frontier') -%}
    {%- set ranges = frontier_ranges() -%}
    {%- if is_incremental_model() -%}
        {{ delete_removed_subjects() }}
    {%- for network, from_block, to_block in stretches_of(ranges) %}
        delete from {{ this }} as written
        using {{ frontier }} as frontier
        where
            {{ is_ahead('written') }}
            and written.block_number between {{ from_block }} and {{ to_block }};
    {%- endfor -%}
    {%- elif is_appended() -%}
        delete from {{ this }};
    {%- endif -%}
{%- endmacro %}


{# Deletes activities derived from readings of touched pairs; `pair` matches a written row with a touched pair. #}
{% macro delete_touched_adjustments(pair) -%}
    {%- set touched = ref('int_balances_to_recompute') -%}
    {%- if is_incremental_model() -%}
    {%- for network, from_block, to_block in stretches_of(touched_ranges()) %}
        delete from {{ this }} as written
        using {{ touched }} as touched
        where
            written.subject_key = touched.subject_key
            and {{ pair }}
            and touched.network = {{ text_literal(network) }}
            and written.block_number >= touched.from_block
            and written.block_number between touched.range_from_block and touched.to_block
            and written.block_number between {{ from_block }} and {{ to_block }}
            and written.activity_type in ('Adjustment', 'Internal')
            and written.transaction_hash is null;
    {%- endfor -%}
    {%- endif -%}
{%- endmacro %}


{# Marks activities that became final as final. #}
{% macro finalize_activities() -%}
    {%- set heads = ref('stg_pipeline__visible_heads') -%}
    {%- if is_incremental_model() -%}
        update {{ this }} as written
        set status = 'Finalized'
        from {{ heads }} as heads
        where
            written.subject_key = heads.subject_key
            and written.status = 'Confirmed'
            and written.block_number <= heads.final_number
    {%- endif -%}
{%- endmacro %}


{#
    Balance points that the build wrote which touched the pairs, with the token and the holder as text, for a common table expression. The
    batch lets the scan skip points of earlier builds.
#}
{% macro written_points() -%}
    {%- if is_incremental_model() -%}
    select
        points.*,
        touched.token_address,
        touched.holder_address
    from {{ ref('int_balance_points') }} as points
    inner join {{ ref('int_balances_to_recompute') }} as touched
        on
            {{ is_same_row('points', 'touched') }}
            and points.block_number >= touched.from_block
    where points.since_batch_id = (select max(since_batch_id) from {{ ref('int_balances_to_recompute') }})
    {%- else -%}
    select points.* from {{ named(ref('int_balance_points')) }} as points
    {%- endif -%}
{%- endmacro %}


{# Counts of the readings of the balance points of a group; columns of a query. #}
{% macro reading_counts(points) -%}
    count({{ points }}.observed_raw) as reading_count,
    count({{ points }}.adjustment_raw) filter (where {{ points }}.is_resting) as resting_adjustment_count,
    count({{ points }}.adjustment_raw) filter (
        where not {{ points }}.is_resting and {{ points }}.adjustment_raw < 0::bignum
    ) as short_adjustment_count,
    count({{ points }}.adjustment_raw) filter (where {{ points }}.is_ignored) as ignored_adjustment_count,
    count({{ points }}.adjustment_raw) as adjustment_count
{%- endmacro %}


{# The sums of these counts of two relations, if both or one has them; columns of a query. #}
{% macro combined_counts(one, other) -%}
    {%- for count in [
        'reading_count',
        'resting_adjustment_count',
        'short_adjustment_count',
        'ignored_adjustment_count',
        'adjustment_count',
    ] -%}
    coalesce({{ one }}.{{ count }}, 0) + coalesce({{ other }}.{{ count }}, 0) as {{ count }}
    {{- ', ' if not loop.last }}
    {%- endfor -%}
{%- endmacro %}


{# The newest balance of each pair in points, with the counts of its readings; a query for a common table expression. #}
{% macro latest_of(points) -%}
    select
        subject_key,
        range_from_block,
        balance_key,
        arg_max(balance_raw, block_number) as balance_raw,
        any_value(opened_by) as opened_by,
        any_value(opening_block) as opening_block,
        min(block_number) filter (where is_moved) as first_moved_block,
        max(block_number) filter (where is_moved) as moved_block,
        max(block_number) filter (where observed_raw is not null) as checked_block,
        arg_max(observed_raw, block_number) as read_raw,
        max(since_batch_id) as since_batch_id,
        {{ reading_counts('points') }}
    from {{ points }} as points
    group by subject_key, range_from_block, balance_key
{%- endmacro %}


{# Subjects whose current state (cap table, positions) is written again; a query. #}
{% macro changed_subjects() -%}
    select subject_key from {{ ref('int_balances_to_recompute') }}
    union distinct
    select subject_key from {{ ref('int_frontier') }}
    where from_block = -1
{%- endmacro %}


{# Deletes all rows of subjects whose current state is written again, or that are no longer configured. #}
{% macro delete_changed_subjects() -%}
    {%- set subjects = ref('stg_control__subjects') -%}
    {%- set changed = changed_subjects() -%}
    {%- if is_incremental_model() -%}
        delete from {{ this }}
        where
            subject_key in ({{ changed }})
            or subject_key not in (select subject_key from {{ subjects }})
    {%- elif is_appended() -%}
        delete from {{ this }}
    {%- endif -%}
{%- endmacro %}


{# Updates the tenant's own token of the contract in a wallet's rows, because it may change at any time. #}
{% macro relink_tokens() -%}
    {%- set listed_tokens = ref('int_wallet_tokens_listed') -%}
    {%- if is_appended() -%}
        update {{ this }} as written
        set token_id = linked.token_id
        from (
            select
                named.subject_key,
                named.token_address,
                listed.token_id
            from (select distinct subject_key, token_address, token_id from {{ this }}) as named
            left join {{ listed_tokens }} as listed
                on
                    named.subject_key = listed.subject_key
                    and named.token_address = listed.token_address
            where named.token_id is distinct from listed.token_id
        ) as linked
        where
            written.subject_key = linked.subject_key
            and written.token_address = linked.token_address
    {%- endif -%}
{%- endmacro %}


{# Deletes blocks after a reorganisation's common ancestor that are no longer in the chain. #}
{% macro delete_orphaned_blocks() -%}
    {%- set reorganisations = ref('stg_pipeline__reorganisations') -%}
    {%- set blocks = ref('stg_chain__blocks') -%}
    {%- if is_appended() -%}
        delete from {{ this }} as written
        using (
            select
                network,
                min(ancestor_block) as ancestor_block
            from {{ reorganisations }}
            where batch_id > {{ transformed_batch() }}
            group by network
        ) as reorganised
        where
            written.network = reorganised.network
            and written.block_number > reorganised.ancestor_block
            and not exists (
                select 1 from {{ blocks }} as blocks
                where
                    blocks.network = written.network
                    and blocks.block_number = written.block_number
                    and blocks.block_hash = written.block_hash
                    and blocks.block_time = written.block_time
            )
    {%- endif -%}
{%- endmacro %}
