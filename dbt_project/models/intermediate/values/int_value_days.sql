{%- set written_days = {
    'token': previous_mart('token_value_days'),
    'wallet': previous_mart('wallet_value_days'),
} -%}

-- Finished days that end in a covered range, in stretches: those with values to compute, and those with rows to keep.
-- Tokens only if they are linked.
-- depends_on: {{ ref('int_balances_to_recompute') }}, {{ ref('int_frontier') }}, {{ ref('int_changed_values') }}
-- depends_on: {{ ref('int_balances_latest') }}, {{ ref('stg_chain__blocks') }}
with

coverage as (

    select * from {{ ref('coverage') }}

),

subjects as (

    select * from {{ ref('stg_control__subjects') }}

),

token_pairs as (

    select * from {{ ref('token_pairs') }}

),

wallets as (

    select * from subjects
    where kind = 'wallet'

),

valued_subjects as (

    select
        subject_key,
        kind,
        network
    from subjects
    where
        subject_key in (select wallets.subject_key from wallets)
        or subject_key in (select token_pairs.subject_key from token_pairs)

),

held_ranges as (

    select
        subject_key,
        from_block,
        from_time,
        is_covered,
        {{ held_until_time() }} as held_until_time
    from coverage

),

due as (

    select
        held_ranges.subject_key,
        valued_subjects.kind,
        valued_subjects.network,
        held_ranges.from_block as range_from_block,
        held_ranges.from_time::date as first_day,
        held_ranges.held_until_time::date - 1 as last_day
    from held_ranges
    inner join valued_subjects on held_ranges.subject_key = valued_subjects.subject_key
    where
        held_ranges.is_covered
        and held_ranges.from_time is not null
        and held_ranges.from_time::date < held_ranges.held_until_time::date

),

{% if written_days['token'] is none or written_days['wallet'] is none or not is_incremental_run() -%}
stretches as (

    select
        subject_key,
        kind,
        range_from_block,
        first_day,
        last_day,
        true as is_changed
    from due

)
{%- else -%}
written as (

    select
        subject_key,
        range_from_block,
        min(day) as first_day,
        max(day) as last_day
    from (
        select
            subject_key,
            range_from_block,
            day
        from {{ written_days['token'] }}
        union all
        select
            subject_key,
            range_from_block,
            day
        from {{ written_days['wallet'] }}
    ) as days
    group by subject_key, range_from_block

),

blocks as (

    select * from {{ ref('stg_chain__blocks') }}

),

touched as (

    select
        subject_key,
        range_from_block,
        min(from_block) as from_block
    from {{ ref('int_balances_to_recompute') }}
    where
        not is_quiet
        and (
            holder_address = {{ supply_holder() }}
            or subject_key in (select wallets.subject_key from wallets)
        )
    group by subject_key, range_from_block

),

changed as (

    -- Days without a row, after the existing ones or before them.
    select
        due.subject_key,
        due.range_from_block,
        due.first_day as from_day,
        coalesce(written.first_day - 1, due.last_day) as to_day
    from due
    left join written
        on
            due.subject_key = written.subject_key
            and due.range_from_block = written.range_from_block

    union all

    select
        due.subject_key,
        due.range_from_block,
        written.last_day + 1 as from_day,
        due.last_day as to_day
    from due
    inner join written
        on
            due.subject_key = written.subject_key
            and due.range_from_block = written.range_from_block

    union all

    select
        due.subject_key,
        due.range_from_block,
        due.first_day as from_day,
        due.last_day as to_day
    from due
    semi join {{ ref('int_frontier') }} as frontier
        on
            due.subject_key = frontier.subject_key
            and due.range_from_block = frontier.range_from_block
            and frontier.from_block = -1

    union all

    select
        due.subject_key,
        due.range_from_block,
        coalesce(blocks.block_time::date, due.first_day) as from_day,
        due.last_day as to_day
    from due
    inner join touched
        on
            due.subject_key = touched.subject_key
            and due.range_from_block = touched.range_from_block
    left join blocks
        on
            due.network = blocks.network
            and touched.from_block = blocks.block_number

    union all

    -- A day is valued at its last microsecond.
    select
        due.subject_key,
        due.range_from_block,
        case when isfinite(repriced.from_time) then repriced.from_time::date else due.first_day end as from_day,
        case when isfinite(repriced.until_time) then repriced.until_time::date - 1 else due.last_day end as to_day
    from due
    inner join {{ ref('int_changed_values') }} as repriced on due.subject_key = repriced.subject_key
    semi join {{ ref('int_balances_latest') }} as balances
        on
            due.subject_key = balances.subject_key
            and due.range_from_block = balances.range_from_block
            and repriced.token_address = balances.token_address

),

clipped as (

    select distinct
        due.subject_key,
        due.range_from_block,
        greatest(changed.from_day, due.first_day) as from_day,
        least(changed.to_day, due.last_day) as to_day
    from due
    inner join changed
        on
            due.subject_key = changed.subject_key
            and due.range_from_block = changed.range_from_block
    where greatest(changed.from_day, due.first_day) <= least(changed.to_day, due.last_day)

),

edges as (

    select
        subject_key,
        range_from_block,
        first_day as day
    from due
    union distinct
    select
        subject_key,
        range_from_block,
        unnest([from_day, to_day + 1]) as day
    from clipped

),

pieces as (

    select
        due.subject_key,
        due.kind,
        due.range_from_block,
        edges.day as first_day,
        coalesce(
            lead(edges.day) over (
                partition by due.subject_key, due.range_from_block
                order by edges.day
            ) - 1,
            due.last_day
        ) as last_day
    from due
    inner join edges
        on
            due.subject_key = edges.subject_key
            and due.range_from_block = edges.range_from_block
            and due.last_day >= edges.day

),

stretches as (

    select
        pieces.*,
        exists(
            select 1 from clipped
            where
                clipped.subject_key = pieces.subject_key
                and clipped.range_from_block = pieces.range_from_block
                and pieces.first_day between clipped.from_day and clipped.to_day
        ) as is_changed
    from pieces

)
{%- endif %}

select * from stretches
