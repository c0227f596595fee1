-- Views over several raw tables; the tables are in pipelines/tables.

-- Collected ranges per address, united.
create or replace view raw.collected_ranges as
with marked as (
    select
        network,
        subject_kind,
        address,
        from_block,
        to_block,
        from_block > coalesce(
            max(to_block) over (
                partition by network, subject_kind, address
                order by from_block, to_block
                rows between unbounded preceding and 1 preceding
            ) + 1,
            -1
        ) as is_first
    from raw.coverage
),

numbered as (
    select
        *,
        count_if(is_first) over (
            partition by network, subject_kind, address
            order by from_block, to_block
            rows unbounded preceding
        ) as range_number
    from marked
)

select network, subject_kind, address, min(from_block) as from_block, max(to_block) as to_block
from numbered
group by network, subject_kind, address, range_number;

-- Ranges per address that were read a second time, united: in full; or, with is_sampled, in full or by a sample.
create or replace view raw.second_readings as
with readings as (
    select network, subject_kind, address, false as is_sampled, from_block, to_block
    from raw.verified_ranges
    where not is_sampled
    union all
    select network, subject_kind, address, true, from_block, to_block from raw.verified_ranges
),

marked as (
    select
        *,
        from_block > coalesce(
            max(to_block) over (
                partition by network, subject_kind, address, is_sampled
                order by from_block, to_block
                rows between unbounded preceding and 1 preceding
            ) + 1,
            -1
        ) as is_first
    from readings
),

numbered as (
    select
        *,
        count_if(is_first) over (
            partition by network, subject_kind, address, is_sampled
            order by from_block, to_block
            rows unbounded preceding
        ) as range_number
    from marked
)

select network, subject_kind, address, is_sampled, min(from_block) as from_block, max(to_block) as to_block
from numbered
group by network, subject_kind, address, is_sampled, range_number;

-- The collected parts of each subject's view, united: its tenant may see them. If a wallet's transactions were
-- requested, a part counts only after they were collected too; such parts are also in the rows with is_native.
create or replace view raw.covered_ranges as
with collected as (
    select
        ranges.subject_key,
        ranges.native = 'full' as is_full,
        subjects.network,
        subjects.address,
        greatest(ranges.from_block, collected.from_block) as from_block,
        least(coalesce(ranges.to_block, collected.to_block), collected.to_block) as to_block
    from raw.view_ranges as ranges
    inner join raw.control_subjects as subjects on ranges.subject_key = subjects.subject_key
    inner join raw.collected_ranges as collected
        on subjects.network = collected.network
        and subjects.kind = collected.subject_kind
        and subjects.address = collected.address
        and ranges.from_block <= collected.to_block
        and coalesce(ranges.to_block, collected.to_block) >= collected.from_block
    where coalesce(ranges.to_block, ranges.from_block) >= ranges.from_block
),

native as (
    select
        collected.subject_key,
        greatest(collected.from_block, natives.from_block) as from_block,
        least(collected.to_block, natives.to_block) as to_block
    from collected
    inner join raw.collected_ranges as natives
        on collected.network = natives.network
        and natives.subject_kind = 'native'
        and collected.address = natives.address
        and collected.from_block <= natives.to_block
        and collected.to_block >= natives.from_block
    where collected.is_full
),

pieces as (
    select subject_key, false as is_native, from_block, to_block from collected where not coalesce(is_full, false)
    union all
    select subject_key, false, from_block, to_block from native
    union all
    select subject_key, true, from_block, to_block from native
),

marked as (
    select
        *,
        from_block > coalesce(
            max(to_block) over (
                partition by subject_key, is_native
                order by from_block, to_block
                rows between unbounded preceding and 1 preceding
            ) + 1,
            -1
        ) as is_first
    from pieces
),

numbered as (
    select
        *,
        count_if(is_first) over (
            partition by subject_key, is_native
            order by from_block, to_block
            rows unbounded preceding
        ) as range_number
    from marked
)

select subject_key, is_native, min(from_block) as from_block, max(to_block) as to_block
from numbered
group by subject_key, is_native, range_number;

-- Preconfigured sources of pairs, if the pair's tenant has them enabled.
create or replace view raw.price_sources_in_use as
select distinct asked.source_id
from raw.control_pair_sources as asked
inner join raw.control_price_pairs as pairs on asked.pair_key = pairs.pair_key
inner join raw.control_price_sources as sources
    on pairs.tenant_id = sources.tenant_id
    and asked.source_id = sources.source_id
where sources.kind = 'Preconfigured' and sources.is_enabled;

-- Prices to poll: legs of resolved routes, of sources that the pair's tenant has enabled, of types that polls supply.
create or replace view raw.wanted_prices as
select distinct routes.source_id, routes.market_id, routes.price_type
from raw.pair_routes as routes
inner join raw.control_price_pairs as pairs on routes.pair_key = pairs.pair_key
inner join raw.control_price_sources as enabled
    on pairs.tenant_id = enabled.tenant_id
    and routes.source_id = enabled.source_id
inner join raw.price_sources as sources on routes.source_id = sources.source_id
where
    routes.status = 'Resolved'
    and routes.market_id is not null
    and enabled.is_enabled
    and list_contains(sources.price_types, routes.price_type);

-- The latest requests of each tenant to read a contract again, over all its ledgers on the network.
create or replace view raw.metadata_requests as
select
    subjects.network,
    subjects.address as token_address,
    subjects.tenant_id,
    max(requests.requested_at) as requested_at,
    max(requests.accepted_at) as accepted_at
from raw.control_metadata_requests as requests
inner join raw.control_subjects as subjects on requests.subject_key = subjects.subject_key
where subjects.kind = 'token'
group by subjects.network, subjects.address, subjects.tenant_id;
