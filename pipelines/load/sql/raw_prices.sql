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

-- The state of each source's list: when it was read last, and why the last attempt failed.
create table if not exists raw.market_lists (
    source_id varchar not null,
    collected_at timestamp,
    market_count bigint not null,
    tried_at timestamp not null,
    error varchar
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

-- The newest poll of each source.
create table if not exists raw.price_polls (
    source_id varchar not null,
    polled_at timestamp not null,
    price_count bigint not null,
    problem_count bigint not null,
    error varchar,
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

-- What became of each discovery.
create table if not exists raw.price_discoveries (
    operation_key bigint not null,
    pair_key bigint not null,
    window_count bigint not null,
    source_count bigint not null,
    status varchar not null,
    error varchar
);

-- Up to where each source of a discovery was read, which windows had a price, and why it went no further; written with
-- the rows.
create table if not exists raw.discovery_progress (
    operation_key bigint not null,
    source_id varchar not null,
    up_to timestamp not null,
    windows_done bigint not null,
    prices_stored bigint not null,
    is_finished boolean not null,
    error varchar
);

-- Windows of a discovery without a price, united.
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
