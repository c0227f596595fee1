-- Tenants that may see more from now on. Either their own data changed since the last build, or blocks without rows
-- were collected and as-of has not advanced in the current period of absolute time.
with newest as (
    select
        tenant_id,
        arg_max(raised_at, data_version) as raised_at,
        arg_max(revision, data_version) as revision,
        arg_max(failing, data_version) as failing
    from raw.tenant_versions
    group by tenant_id
),

-- Failed blocks of views; coverage shows if they were collected meanwhile.
failed as (
    select
        subjects.tenant_id,
        subjects.subject_key,
        greatest(views.from_block, coalesce(failures.from_block, 0)) as from_block,
        least(views.to_block, failures.to_block, heads.head_number) as to_block
    from raw.collection_failures as failures
    inner join raw.control_subjects as subjects on failures.network = subjects.network
    inner join raw.view_ranges as views on subjects.subject_key = views.subject_key
    inner join raw.visible_heads as heads on subjects.subject_key = heads.subject_key
    where failures.batch_id > $built
),

missing as (
    select distinct tenant_id, concat_ws(' ', subject_key, from_block, to_block) as piece
    from failed
    where
        from_block <= to_block
        and not exists (
            select 1 from raw.visible_ranges as covered
            where
                covered.subject_key = failed.subject_key
                and not covered.is_native
                and covered.from_block <= failed.from_block
                and covered.to_block >= failed.to_block
        )
),

failing as (
    select tenant_id, string_agg(piece, ',' order by piece) as failing
    from missing
    group by tenant_id
),

marked as (
    select distinct subjects.tenant_id
    from raw.changes as changes
    inner join raw.control_subjects as subjects on changes.subject_key = subjects.subject_key
    where changes.batch_id > $built
),

-- Samples that agree with known balances are not marked.
readings as (
    select
        network,
        unnest(['token', 'wallet']) as kind,
        unnest([token_address, holder_address]) as address,
        block_number,
        visible_to
    from raw.balance_observations
    where batch_id > $built
),

read as (
    select distinct subjects.tenant_id
    from readings
    inner join raw.control_subjects as subjects
        on
            readings.network = subjects.network
            and readings.kind = subjects.kind
            and readings.address = subjects.address
    inner join raw.visible_ranges as shown
        on
            subjects.subject_key = shown.subject_key
            and readings.block_number between shown.from_block - 1 and shown.to_block
    where readings.visible_to[subjects.tenant_id] > $built
),

priced as (
    select pairs.tenant_id
    from raw.price_changes as changes
    inner join raw.control_price_pairs as pairs on changes.pair_key = pairs.pair_key
    where changes.batch_id > $built
    union
    select pairs.tenant_id
    from raw.markets as markets
    inner join raw.control_pair_sources as asked on markets.source_id = asked.source_id
    inner join raw.control_price_pairs as pairs on asked.pair_key = pairs.pair_key
    where markets.batch_id > $built
),

-- Visible ranges that gained or lost blocks.
filled as (
    select distinct subjects.tenant_id
    from ((from raw.visible_ranges except from $held) union all (from $held except from raw.visible_ranges)) as ranges
    inner join raw.control_subjects as subjects on ranges.subject_key = subjects.subject_key
),

late as (
    select distinct subjects.tenant_id
    from raw.covered_ranges as covered
    inner join raw.control_subjects as subjects on covered.subject_key = subjects.subject_key
    left join raw.tenant_horizons as horizons
        on
            subjects.tenant_id = horizons.tenant_id
            and subjects.network = horizons.network
    where covered.to_block > coalesce(horizons.head_number, -1)
)

select tenants.tenant_id, tenants.revision, coalesce(failing.failing, '') as failing
from raw.control_tenants as tenants
left join newest on tenants.tenant_id = newest.tenant_id
left join failing on tenants.tenant_id = failing.tenant_id
where
    newest.tenant_id is null
    or newest.revision is distinct from tenants.revision
    or newest.failing is distinct from coalesce(failing.failing, '')
    or tenants.tenant_id in (
        select tenant_id from marked
        union all
        select tenant_id from read
        union all
        select tenant_id from priced
        union all
        select tenant_id from filled
    )
    or (
        tenants.tenant_id in (select tenant_id from late)
        -- If the clock was ahead, the period of the last number is still to come.
        and epoch_ms(newest.raised_at) // (1000 * $seconds) != epoch_ms($now) // (1000 * $seconds)
    )
order by tenants.tenant_id;
