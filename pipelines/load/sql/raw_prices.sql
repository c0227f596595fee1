-- The raw tables of pricing: what tenants configured, what the price sources said, and how it was collected.
-- Times are UTC. Prices are exact: units of the quote asset for one unit of the base asset.

-- The definitions of price sources in force; replaced whole.
create table if not exists raw.price_sources (
    source_id varchar not null,
    name varchar not null,
    adapter varchar not null,
    price_types varchar [] not null,
    granularities varchar [] not null
);

-- The control store's pricing as the cycle saw it; each replaced whole, except the manual prices.
create table if not exists raw.control_priced_items (
    item_key bigint not null,
    tenant_id varchar not null,
    symbol varchar not null,
    name varchar not null,
    item_class varchar not null
);

create table if not exists raw.control_mapping_symbols (
    item_key bigint not null,
    source_id varchar not null,
    symbol varchar not null
);

-- Which sources each tenant has, and whether it has them enabled; kind is Manual or Preconfigured.
create table if not exists raw.control_price_sources (
    tenant_id varchar not null,
    source_id varchar not null,
    name varchar not null,
    kind varchar not null,
    is_enabled boolean not null
);

-- Guards are in percent; max_age_seconds is null where age does not matter.
create table if not exists raw.control_price_pairs (
    pair_key bigint not null,
    pair_id varchar not null,
    tenant_id varchar not null,
    priced_as varchar not null,
    priced_in varchar not null,
    price_type varchar not null,
    max_age_seconds bigint,
    allow_inverse boolean not null,
    bridge varchar,
    max_jump decimal(38, 18),
    max_deviation decimal(38, 18),
    created_at timestamp not null
);

-- The sources of each pair in priority order; position 0 is the first.
create table if not exists raw.control_pair_sources (
    pair_key bigint not null,
    position integer not null,
    source_id varchar not null
);

-- What manual sources price.
create table if not exists raw.control_supported_pairs (
    supported_pair_key bigint not null,
    supported_pair_id varchar not null,
    source_id varchar not null,
    tenant_id varchar not null,
    priced_as varchar not null,
    priced_in varchar not null,
    price_type varchar not null
);

-- Every revision of every manual price. Rows never change and are appended by key.
create table if not exists raw.control_manual_prices (
    manual_price_key bigint not null,
    price_id varchar not null,
    supported_pair_key bigint not null,
    price decimal(38, 18) not null,
    effective_from timestamp not null,
    revision integer not null,
    note varchar,
    created_at timestamp not null
);

-- What operators decided on quarantined prices: Accepted or Rejected.
create table if not exists raw.control_price_reviews (
    pair_key bigint not null,
    price_id varchar not null,
    decision varchar not null
);

-- Discoveries that tenants asked for, finished or not.
create table if not exists raw.control_price_discoveries (
    operation_key bigint not null,
    pair_key bigint not null,
    from_text varchar not null,
    to_text varchar not null,
    window_size varchar not null,
    multiplier varchar not null,
    status varchar not null,
    is_cancelled boolean not null,
    created_at timestamp not null
);

-- What each source lists; base and quote are unified codes, the others the source's own. A market that vanished from the
-- list stays, as inactive.
create table if not exists raw.markets (
    source_id varchar not null,
    market_id varchar not null,
    base varchar not null,
    quote varchar not null,
    base_code varchar not null,
    quote_code varchar not null,
    is_active boolean not null,
    first_listed_at timestamp not null,
    last_listed_at timestamp not null,
    batch_id bigint not null
);

-- The state of each source's list: when it was read last, why the last attempt failed, since when that is so, and
-- when it is to be read again.
create table if not exists raw.market_lists (
    source_id varchar not null,
    collected_at timestamp,
    market_count bigint not null,
    tried_at timestamp not null,
    error varchar,
    failures_in_a_row integer not null,
    status_since timestamp not null,
    due_at timestamp not null,
    batch_id bigint not null
);

-- Prices of markets, once per source. A window's price is its last one, effective from the window's end; polled prices
-- have no window. Identity: source, market, price type, window_start, effective_from.
create table if not exists raw.prices (
    source_id varchar not null,
    market_id varchar not null,
    price_type varchar not null,
    window_start timestamp,
    effective_from timestamp not null,
    price decimal(38, 18) not null,
    origin varchar not null,
    is_partial boolean not null,
    first_collected_at timestamp not null,
    last_collected_at timestamp not null,
    batch_id bigint not null
);

-- The windows that a pair's own discoveries asked for; identity as in raw.prices, per pair.
create table if not exists raw.pair_windows (
    pair_key bigint not null,
    source_id varchar not null,
    market_id varchar not null,
    price_type varchar not null,
    window_start timestamp not null,
    effective_from timestamp not null
);

-- How each source prices each pair: one row per leg, or one of leg_number 0 where it does not.
create table if not exists raw.pair_routes (
    pair_key bigint not null,
    source_id varchar not null,
    position integer not null,
    status varchar not null,
    derivation varchar,
    detail varchar,
    leg_number integer not null,
    market_id varchar,
    price_type varchar,
    is_inverted boolean not null,
    supported_pair_key bigint
);

-- The newest poll of each source, since when polls go well or fail, and when the next is due.
create table if not exists raw.price_polls (
    source_id varchar not null,
    polled_at timestamp not null,
    price_count bigint not null,
    problem_count bigint not null,
    error varchar,
    failures_in_a_row integer not null,
    status_since timestamp not null,
    due_at timestamp not null,
    batch_id bigint not null
);

-- What each source's newest poll could not say, by market and price type.
create table if not exists raw.price_problems (
    source_id varchar not null,
    market_id varchar not null,
    price_type varchar not null,
    detail varchar not null,
    batch_id bigint not null
);

-- What became of each discovery; its range once it began, and the newest batch in which it changed a price of the pair.
create table if not exists raw.price_discoveries (
    operation_key bigint not null,
    pair_key bigint not null,
    from_time timestamp,
    to_time timestamp,
    window_count bigint not null,
    status varchar not null,
    changed_batch bigint,
    error varchar
);

-- How far each market of a discovery was read, and the price found in the window that is not read to its end; written with
-- the rows. market_id is null where a source could not be asked at all.
create table if not exists raw.discovery_readings (
    operation_key bigint not null,
    pair_key bigint not null,
    source_id varchar not null,
    market_id varchar,
    price_type varchar,
    up_to timestamp not null,
    pending_price decimal(38, 18),
    windows_done bigint not null,
    prices_stored bigint not null,
    is_finished boolean not null,
    is_given_up boolean not null,
    failures_in_a_row integer not null,
    error varchar,
    problem_count bigint not null,
    problem varchar
);

-- Windows of a discovery for which a market had no price, neighbours united within a chunk.
create table if not exists raw.discovery_gaps (
    operation_key bigint not null,
    source_id varchar not null,
    from_time timestamp not null,
    to_time timestamp not null
);

-- What of a pair's source prices changed, from that effective time on (null: everything); written in the transaction that
-- changed it, dropped once transformed.
create table if not exists raw.price_changes (
    batch_id bigint not null,
    pair_key bigint not null,
    from_time timestamp
);

-- Preconfigured sources that some pair names whose tenant has them enabled.
create or replace view raw.price_sources_in_use as
select distinct asked.source_id
from raw.control_pair_sources as asked
inner join raw.control_price_pairs as pairs on asked.pair_key = pairs.pair_key
inner join raw.control_price_sources as sources
    on pairs.tenant_id = sources.tenant_id
    and asked.source_id = sources.source_id
where sources.kind = 'Preconfigured' and sources.is_enabled;

-- What is polled: legs of resolved routes, of pairs whose tenant has the source enabled, of types that polling supplies.
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
