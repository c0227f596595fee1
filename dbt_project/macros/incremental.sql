{#
    How incremental models keep up at the cost of what changed. raw.changes, and readings of new batches, say what must be
    computed anew since the newest batch in the marts. A model deletes those rows from itself in pre-hooks and appends them as
    they are now, in one transaction. A full refresh computes everything and gives the same rows (a test).
#}

{# Beyond any block number. #}
{% macro last_block() -%}
    9223372036854775807
{%- endmacro %}


{# The pseudo-holder whose balance is a token's total supply: mints and burns move it, and it is read like any other. #}
{% macro supply_holder() -%}
    'supply'
{%- endmacro %}


{# An intermediate table as the run before left it, or none: what a model may know of a later model's last state. #}
{% macro previous(name) -%}
    {%- set is_known = execute and not flags.FULL_REFRESH -%}
    {{ return(adapter.get_relation(database=target.database, schema='intermediate', identifier=name) if is_known else none) }}
{%- endmacro %}


{#
    Whether balances are carried on from the run before, rather than computed from the beginning. Touched balances, balance inputs and
    balance points must agree on it; hence this and not is_incremental().
#}
{% macro carries_balances_on() -%}
    {{ return(previous('int_balance_points') is not none) }}
{%- endmacro %}


{#
    A relation with network and block_number, less the rows that no change reaches: per span with constants, so that the scan
    skips what lies before and behind. The caller still joins the exact ranges.
#}
{% macro recent_rows(relation, is_recent) -%}
    {%- set spans = ref('int_changed_spans') -%}
    {%- if execute and is_recent -%}
        (
            select * from {{ relation }}
            where false
            {%- for network, from_block, to_block in run_query('select network, from_block, to_block from ' ~ spans) %}
            union all
            select * from {{ relation }}
            where network = '{{ network | replace("'", "''") }}' and block_number between {{ from_block }} and {{ to_block }}
            {%- endfor %}
        )
    {%- else -%}
        {{ relation }}
    {%- endif -%}
{%- endmacro %}


{#
    Parts of covered ranges whose rows must be read anew, which may overlap; a query for a common table expression. What was cut off a
    range begins at the block behind it.
#}
{% macro changed_covered_ranges() -%}
    select
        views.subject_key,
        views.from_block as range_from_block,
        changed.from_block,
        changed.to_block
    from {{ ref('int_changed_ranges') }} as changed
    inner join {{ ref('int_covered_ranges') }} as views
        on
            changed.subject_key = views.subject_key
            and changed.from_block <= views.to_block + 1
            and changed.to_block >= views.from_block
    where changed.reason not in ('Finality', 'Observation')
{%- endmacro %}


{# Deletes rows of subjects that are no longer configured. #}
{% macro delete_removed_subjects() -%}
    {%- set subjects = ref('stg_control__subjects') -%}
    {%- if is_incremental() -%}
        delete from {{ this }}
        where subject_key not in (select subject_key from {{ subjects }})
    {%- endif -%}
{%- endmacro %}


{# Deletes rows of covered ranges that are no more, or begin elsewhere now. #}
{% macro delete_gone_ranges() -%}
    {%- set covered_ranges = ref('int_covered_ranges') -%}
    {%- if is_incremental() -%}
        delete from {{ this }}
        where (subject_key, range_from_block) not in (select (subject_key, from_block) from {{ covered_ranges }})
    {%- endif -%}
{%- endmacro %}


{# Deletes all rows of subjects whose current state must be computed anew. #}
{% macro delete_changed_subjects() -%}
    {%- set changed_subjects = ref('int_changed_subjects') -%}
    {%- if is_incremental() -%}
        delete from {{ this }}
        where subject_key in (select subject_key from {{ changed_subjects }})
    {%- endif -%}
{%- endmacro %}


{# Deletes all rows of subjects whose view or contracts changed. #}
{% macro delete_reset_subjects() -%}
    {%- set changed_ranges = ref('int_changed_ranges') -%}
    {%- if is_incremental() -%}
        delete from {{ this }}
        where subject_key in (select subject_key from {{ changed_ranges }} where reason in ('View', 'Metadata'))
    {%- endif -%}
{%- endmacro %}


{# Deletes activities in the changed ranges. #}
{% macro delete_changed_ranges() -%}
    {%- set changed_ranges = ref('int_changed_ranges') -%}
    {%- if is_incremental() -%}
        delete from {{ this }} as written
        using {{ changed_ranges }} as changed
        where
            written.subject_key = changed.subject_key
            and written.block_number between changed.from_block and changed.to_block
            and changed.reason != 'Observation'
    {%- endif -%}
{%- endmacro %}


{# Whether a written row is of the touched pair. #}
{% macro is_touched_pair() -%}
    written.token_address = touched.token_address and written.holder_address = touched.holder_address
{%- endmacro %}


{#
    Deletes the touched pairs' rows, from the block on that must be computed anew or (`whole`) all of them; `pair` matches a written
    row of the same range with a touched pair.
#}
{% macro delete_touched_balances(whole=false, pair=is_touched_pair()) -%}
    {%- set touched_balances = ref('int_touched_balances') -%}
    {%- if is_incremental() -%}
        delete from {{ this }} as written
        using {{ touched_balances }} as touched
        where
            written.subject_key = touched.subject_key
            and written.range_from_block = touched.range_from_block
            and {{ pair }}
            {%- if not whole %}
            and written.block_number >= touched.from_block
            {%- endif %}
    {%- endif -%}
{%- endmacro %}


{# Deletes activities that follow from readings of the touched pairs; `pair` matches a written row with a touched pair. #}
{% macro delete_touched_adjustments(pair) -%}
    {%- set touched_balances = ref('int_touched_balances') -%}
    {%- set covered_ranges = ref('int_covered_ranges') -%}
    {%- if is_incremental() -%}
        delete from {{ this }} as written
        using
            {{ touched_balances }} as touched
            inner join {{ covered_ranges }} as views
                on
                    touched.subject_key = views.subject_key
                    and touched.range_from_block = views.from_block
        where
            written.subject_key = touched.subject_key
            and {{ pair }}
            and written.block_number >= touched.from_block
            and written.block_number between views.from_block and views.to_block
            and written.activity_type in ('Adjustment', 'Internal')
            and written.transaction_hash is null
    {%- endif -%}
{%- endmacro %}


{# Whether a row of `points` belongs to what the two macros above delete. #}
{% macro is_recent_point() -%}
    {%- set touched_balances = ref('int_touched_balances') -%}
    {%- set changed_ranges = ref('int_changed_ranges') -%}
    {%- if execute and is_incremental() -%}
        (
            exists (
                select 1 from {{ touched_balances }} as touched
                where
                    touched.subject_key = points.subject_key
                    and touched.range_from_block = points.range_from_block
                    and touched.token_address = points.token_address
                    and touched.holder_address = points.holder_address
                    and touched.from_block <= points.block_number
            )
            or exists (
                select 1 from {{ changed_ranges }} as changed
                where
                    changed.subject_key = points.subject_key
                    and changed.from_block <= points.block_number
                    and changed.to_block >= points.block_number
                    and changed.reason != 'Observation'
            )
        )
    {%- else -%}
        true
    {%- endif -%}
{%- endmacro %}


{# A wallet's rows name the tenant's own token of the contract; which one that is may change at any time. #}
{% macro relink_tokens() -%}
    {%- set listed_tokens = ref('int_wallet_tokens_listed') -%}
    {%- if is_incremental() -%}
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


{# Deletes blocks after a reorganisation's common ancestor that are not on the chain any more. #}
{% macro delete_orphaned_blocks() -%}
    {%- set reorganisations = ref('stg_pipeline__reorganisations') -%}
    {%- set transforms = ref('stg_pipeline__transforms') -%}
    {%- set blocks = ref('stg_chain__blocks') -%}
    {%- if is_incremental() -%}
        delete from {{ this }} as written
        using (
            select
                network,
                min(ancestor_block) as ancestor_block
            from {{ reorganisations }}
            where batch_id > (select coalesce(max(batch_id), -1) from {{ transforms }})
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
