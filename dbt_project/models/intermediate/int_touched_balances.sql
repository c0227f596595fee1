{%- set points = previous('int_balance_points') -%}
{%- set earlier_touched = previous('int_touched_balances') -%}

-- Pairs of token and holder whose balances must be computed anew, and from which block on. Empty when balances are
-- computed from the beginning. from_block is -1 where the pair must start over: it is new, or known no more, or its
-- offset before from_block came from a later reading.
{% if not carries_balances_on() -%}
select
    null::bigint as subject_key,
    null::bigint as window_key,
    null::varchar as token_address,
    null::varchar as holder_address,
    null::bigint as from_block,
    null::boolean as is_known,
    null::bigint as since_batch_id
where false
-- depends_on: {{ ref('int_changed_ranges') }}, {{ ref('int_view_ranges') }}
-- depends_on: {{ ref('int_movements_split_to_legs') }}, {{ ref('int_observations_in_view') }}
-- depends_on: {{ ref('int_wallet_tokens_listed') }}, {{ ref('stg_pipeline__transforms') }}
{%- else -%}
with

views as (

    select * from {{ ref('int_view_ranges') }}

),

points as (

    select * from {{ points }}

),

observations as (

    select * from {{ ref('int_observations_in_view') }}

),

listed_tokens as (

    select * from {{ ref('int_wallet_tokens_listed') }}

),

transforms as (

    select coalesce(max(batch_id), -1) as batch_id
    from {{ ref('stg_pipeline__transforms') }}

),

changed_subjects as (

    select
        subject_key,
        min(from_block) filter (where reason not in ('Finality', 'Observation')) as rows_from_block,
        min(from_block) filter (where reason = 'Reorganisation') as orphaned_from_block
    from {{ ref('int_changed_ranges') }}
    group by subject_key

),

legs as (

    select
        legs.subject_key,
        legs.window_key,
        legs.token_address,
        legs.holder_address,
        changed_subjects.rows_from_block
    from {{ recent_rows(ref('int_movements_split_to_legs'), true) }} as legs
    inner join changed_subjects
        on
            legs.subject_key = changed_subjects.subject_key
            and legs.block_number >= changed_subjects.rows_from_block

),

moved as (

    select
        subject_key,
        window_key,
        token_address,
        holder_address,
        min(rows_from_block) as from_block
    from legs
    group by subject_key, window_key, token_address, holder_address

),

observed as (

    select
        observations.subject_key,
        observations.window_key,
        observations.token_address,
        observations.holder_address,
        min(observations.block_number) as from_block
    from observations
    cross join transforms
    left join changed_subjects on observations.subject_key = changed_subjects.subject_key
    where
        observations.batch_id > transforms.batch_id
        or observations.block_number >= changed_subjects.rows_from_block
    group by observations.subject_key, observations.window_key, observations.token_address, observations.holder_address

),

orphaned as (

    select
        points.subject_key,
        points.window_key,
        points.token_address,
        points.holder_address,
        min(points.block_number) as from_block
    from points
    inner join changed_subjects on points.subject_key = changed_subjects.subject_key
    where
        points.block_number >= changed_subjects.orphaned_from_block
        or points.offset_block >= changed_subjects.orphaned_from_block
    group by points.subject_key, points.window_key, points.token_address, points.holder_address

),

-- A tenant that adds or removes a token changes which readings its wallets show.
resting as (

    select
        points.subject_key,
        points.window_key,
        points.token_address,
        points.holder_address
    from points
    inner join views
        on
            points.window_key = views.window_key
            and views.kind = 'wallet'
    group by points.subject_key, points.window_key, points.token_address, points.holder_address
    having not bool_or(points.is_moved)

),

unlisted as (

    select
        resting.*,
        -1 as from_block
    from resting
    anti join listed_tokens
        on
            resting.subject_key = listed_tokens.subject_key
            and resting.token_address = listed_tokens.token_address

),

newly_listed as (

    select distinct
        observations.subject_key,
        observations.window_key,
        observations.token_address,
        observations.holder_address,
        -1 as from_block
    from observations
    inner join listed_tokens
        on
            observations.subject_key = listed_tokens.subject_key
            and observations.token_address = listed_tokens.token_address
    anti join points
        on
            observations.window_key = points.window_key
            and observations.token_address = points.token_address
            and observations.holder_address = points.holder_address

),

-- What a build that did not come to its end had touched: its later models may still hold it as it was.
unfinished as (

    {% if earlier_touched is not none -%}
    select
        earlier.subject_key,
        earlier.window_key,
        earlier.token_address,
        earlier.holder_address,
        earlier.from_block
    from {{ earlier_touched }} as earlier
    inner join transforms on earlier.since_batch_id = transforms.batch_id
    {%- else -%}
    select * from moved
    where false
    {%- endif %}

),

candidates as (

    select
        subject_key,
        window_key,
        token_address,
        holder_address,
        min(from_block) as from_block
    from (
        select * from moved
        union all
        select * from observed
        union all
        select * from orphaned
        union all
        select * from unlisted
        union all
        select * from newly_listed
        union all
        select * from unfinished
    ) as reasons
    group by subject_key, window_key, token_address, holder_address

),

-- The newest point before from_block, where its offset does not come from a reading at or after from_block.
carried as (

    select
        candidates.subject_key,
        candidates.window_key,
        candidates.token_address,
        candidates.holder_address,
        arg_max(coalesce(points.offset_block, {{ last_block() }}), points.block_number) as offset_block
    from candidates
    inner join points
        on
            candidates.subject_key = points.subject_key
            and candidates.window_key = points.window_key
            and candidates.token_address = points.token_address
            and candidates.holder_address = points.holder_address
            and candidates.from_block > points.block_number
    group by candidates.subject_key, candidates.window_key, candidates.token_address, candidates.holder_address

),

-- A pair is known from the first window in which it moved.
moved_windows as (

    select
        subject_key,
        window_key,
        token_address,
        holder_address
    from moved

    union distinct

    select
        points.subject_key,
        points.window_key,
        points.token_address,
        points.holder_address
    from points
    inner join candidates
        on
            points.subject_key = candidates.subject_key
            and points.token_address = candidates.token_address
            and points.holder_address = candidates.holder_address
    left join changed_subjects on points.subject_key = changed_subjects.subject_key
    where
        points.is_moved
        and points.block_number < coalesce(changed_subjects.rows_from_block, {{ last_block() }})

),

known as (

    select
        moved_windows.subject_key,
        moved_windows.token_address,
        moved_windows.holder_address,
        min(views.from_block) as from_block
    from moved_windows
    inner join views on moved_windows.window_key = views.window_key
    group by moved_windows.subject_key, moved_windows.token_address, moved_windows.holder_address

),

judged as (

    select
        candidates.subject_key,
        candidates.window_key,
        candidates.token_address,
        candidates.holder_address,
        candidates.from_block,
        coalesce(carried.offset_block < candidates.from_block, false) as is_carried,
        listed_tokens.token_address is not null
        or coalesce(views.from_block >= known.from_block, false) as is_known,
        transforms.batch_id as since_batch_id
    from candidates
    cross join transforms
    inner join views on candidates.window_key = views.window_key
    left join carried
        on
            candidates.subject_key = carried.subject_key
            and candidates.window_key = carried.window_key
            and candidates.token_address = carried.token_address
            and candidates.holder_address = carried.holder_address
    left join known
        on
            candidates.subject_key = known.subject_key
            and candidates.token_address = known.token_address
            and candidates.holder_address = known.holder_address
    left join listed_tokens
        on
            candidates.subject_key = listed_tokens.subject_key
            and candidates.token_address = listed_tokens.token_address

),

touched as (

    select
        subject_key,
        window_key,
        token_address,
        holder_address,
        case when is_known and is_carried then from_block else -1 end as from_block,
        is_known,
        since_batch_id
    from judged

)

-- A reading of a pair that the tenant never saw move is nobody's business here, unless it must be removed.
select touched.* from touched
where
    touched.is_known
    or exists (
        select 1 from points
        where
            points.window_key = touched.window_key
            and points.token_address = touched.token_address
            and points.holder_address = touched.holder_address
    )
{%- endif %}
