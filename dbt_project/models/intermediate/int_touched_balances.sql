{%- set points = previous('int_balance_points') -%}
{%- set earlier_touched = previous('int_touched_balances') -%}

-- Pairs of token and holder whose balances must be computed anew, and from which block on. Empty when balances are
-- computed from the beginning. from_block is -1 where the pair must start over: it is new, or known no more, or its
-- offset before from_block came from a later reading.
{% if not carries_balances_on() -%}
select
    null::bigint as subject_key,
    null::bigint as range_from_block,
    null::varchar as token_address,
    null::varchar as holder_address,
    null::bigint as from_block,
    null::boolean as is_known,
    null::bigint as since_batch_id
where false
-- depends_on: {{ ref('int_changed_ranges') }}, {{ ref('int_covered_ranges') }}
-- depends_on: {{ ref('int_changed_spans') }}
-- depends_on: {{ ref('int_movements_split_to_legs') }}, {{ ref('int_observations_in_view') }}
-- depends_on: {{ ref('int_wallet_tokens_listed') }}, {{ ref('stg_pipeline__transforms') }}
{%- else -%}
with

views as (

    select * from {{ ref('int_covered_ranges') }}

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

changed_ranges as (

    {{ changed_covered_ranges() }}

),

legs as (

    select
        legs.subject_key,
        legs.range_from_block,
        legs.token_address,
        legs.holder_address,
        changed_ranges.from_block
    from {{ recent_rows(ref('int_movements_split_to_legs'), true) }} as legs
    inner join changed_ranges
        on
            legs.subject_key = changed_ranges.subject_key
            and legs.range_from_block = changed_ranges.range_from_block
            and legs.block_number between changed_ranges.from_block and changed_ranges.to_block

),

moved as (

    select
        subject_key,
        range_from_block,
        token_address,
        holder_address,
        min(from_block) as from_block
    from legs
    group by subject_key, range_from_block, token_address, holder_address

),

-- New readings, and those that a changed range shows now.
read as ( -- noqa: ST03

    select
        observations.subject_key,
        observations.range_from_block,
        observations.token_address,
        observations.holder_address,
        observations.block_number
    from observations
    cross join transforms
    where observations.batch_id > transforms.batch_id

    union all

    select
        observations.subject_key,
        observations.range_from_block,
        observations.token_address,
        observations.holder_address,
        observations.block_number
    from {{ recent_rows(ref('int_observations_in_view'), true) }} as observations
    inner join changed_ranges
        on
            observations.subject_key = changed_ranges.subject_key
            and observations.range_from_block = changed_ranges.range_from_block
            and observations.block_number between changed_ranges.from_block and changed_ranges.to_block

),

observed as (

    select
        subject_key,
        range_from_block,
        token_address,
        holder_address,
        min(block_number) as from_block
    from read
    group by subject_key, range_from_block, token_address, holder_address

),

-- What moved or was read in blocks that are read anew may be otherwise there, or be gone.
unsettled as (

    select
        points.subject_key,
        points.range_from_block,
        points.token_address,
        points.holder_address,
        min(points.block_number) as from_block
    from points
    inner join changed_ranges
        on
            points.subject_key = changed_ranges.subject_key
            and points.range_from_block = changed_ranges.range_from_block
            and points.block_number between changed_ranges.from_block and changed_ranges.to_block
    group by points.subject_key, points.range_from_block, points.token_address, points.holder_address

),

-- A pair that moves for the first time shows what was read of it in other ranges.
newly_moved as (

    select distinct
        observations.subject_key,
        observations.range_from_block,
        observations.token_address,
        observations.holder_address,
        -1 as from_block
    from observations
    semi join moved
        on
            observations.subject_key = moved.subject_key
            and observations.token_address = moved.token_address
            and observations.holder_address = moved.holder_address
            and observations.range_from_block != moved.range_from_block
    anti join points
        on
            observations.subject_key = points.subject_key
            and observations.range_from_block = points.range_from_block
            and observations.token_address = points.token_address
            and observations.holder_address = points.holder_address

),

-- A tenant that adds or removes a token changes which readings its wallets show.
resting as (

    select
        points.subject_key,
        points.range_from_block,
        points.token_address,
        points.holder_address
    from points
    inner join views
        on
            points.subject_key = views.subject_key
            and points.range_from_block = views.from_block
            and views.kind = 'wallet'
    group by points.subject_key, points.range_from_block, points.token_address, points.holder_address
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
        observations.range_from_block,
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
            observations.subject_key = points.subject_key
            and observations.range_from_block = points.range_from_block
            and observations.token_address = points.token_address
            and observations.holder_address = points.holder_address

),

-- What a build that did not come to its end had touched: its later models may still hold it as it was.
unfinished as (

    {% if earlier_touched is not none -%}
    select
        earlier.subject_key,
        earlier.range_from_block,
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

reasons as (

    select * from moved
    union all
    select * from observed
    union all
    select * from unsettled
    union all
    select * from newly_moved
    union all
    select * from unlisted
    union all
    select * from newly_listed
    union all
    select * from unfinished

),

-- Pairs that may have lost a movement, or lost all of them with their range.
bereft as (

    select
        subject_key,
        token_address,
        holder_address
    from unsettled

    union distinct

    select
        points.subject_key,
        points.token_address,
        points.holder_address
    from points
    anti join views
        on
            points.subject_key = views.subject_key
            and points.range_from_block = views.from_block

),

concerned as (

    select
        subject_key,
        token_address,
        holder_address
    from reasons

    union distinct

    select * from bereft

),

-- A pair is known once it moved, in any range of the view.
known as (

    select
        subject_key,
        token_address,
        holder_address
    from moved

    union distinct

    select
        points.subject_key,
        points.token_address,
        points.holder_address
    from points
    semi join concerned
        on
            points.subject_key = concerned.subject_key
            and points.token_address = concerned.token_address
            and points.holder_address = concerned.holder_address
    inner join views
        on
            points.subject_key = views.subject_key
            and points.range_from_block = views.from_block
    anti join changed_ranges
        on
            points.subject_key = changed_ranges.subject_key
            and points.range_from_block = changed_ranges.range_from_block
            and points.block_number between changed_ranges.from_block and changed_ranges.to_block
    where points.is_moved

),

-- A pair that is known no more shows nothing in its other ranges either.
forgotten as (

    select
        points.subject_key,
        points.range_from_block,
        points.token_address,
        points.holder_address,
        -1 as from_block
    from points
    semi join bereft
        on
            points.subject_key = bereft.subject_key
            and points.token_address = bereft.token_address
            and points.holder_address = bereft.holder_address
    anti join known
        on
            points.subject_key = known.subject_key
            and points.token_address = known.token_address
            and points.holder_address = known.holder_address

),

candidates as (

    select
        subject_key,
        range_from_block,
        token_address,
        holder_address,
        min(from_block) as from_block
    from (
        select * from reasons
        union all
        select * from forgotten
    ) as all_reasons
    group by subject_key, range_from_block, token_address, holder_address

),

-- The newest point before from_block, where its offset does not come from a reading at or after from_block.
carried as (

    select
        candidates.subject_key,
        candidates.range_from_block,
        candidates.token_address,
        candidates.holder_address,
        arg_max(coalesce(points.offset_block, {{ last_block() }}), points.block_number) as offset_block
    from candidates
    inner join points
        on
            candidates.subject_key = points.subject_key
            and candidates.range_from_block = points.range_from_block
            and candidates.token_address = points.token_address
            and candidates.holder_address = points.holder_address
            and candidates.from_block > points.block_number
    group by candidates.subject_key, candidates.range_from_block, candidates.token_address, candidates.holder_address

),

judged as (

    select
        candidates.subject_key,
        candidates.range_from_block,
        candidates.token_address,
        candidates.holder_address,
        candidates.from_block,
        coalesce(carried.offset_block < candidates.from_block, false) as is_carried,
        listed_tokens.token_address is not null
        or known.subject_key is not null
        or candidates.holder_address = {{ supply_holder() }} as is_known,
        transforms.batch_id as since_batch_id
    from candidates
    cross join transforms
    inner join views
        on
            candidates.subject_key = views.subject_key
            and candidates.range_from_block = views.from_block
    left join carried
        on
            candidates.subject_key = carried.subject_key
            and candidates.range_from_block = carried.range_from_block
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
        range_from_block,
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
            points.subject_key = touched.subject_key
            and points.range_from_block = touched.range_from_block
            and points.token_address = touched.token_address
            and points.holder_address = touched.holder_address
    )
    or exists (
        select 1 from unfinished
        where
            unfinished.subject_key = touched.subject_key
            and unfinished.range_from_block = touched.range_from_block
            and unfinished.token_address = touched.token_address
            and unfinished.holder_address = touched.holder_address
    )
{%- endif %}
