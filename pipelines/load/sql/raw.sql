-- The raw tables: what the chains said, and the record of how it was collected.
-- Times are UTC. Addresses and hashes are lower-case 0x text. Amounts are integers in base units.

create schema if not exists raw;

create sequence if not exists raw.batch_ids;

-- One row per pipeline cycle.
create table if not exists raw.batches (
    batch_id bigint not null,
    run_id varchar not null,
    started_at timestamp not null,
    finished_at timestamp
);

-- One row per completed dbt build: everything up to batch_id is in the marts.
create table if not exists raw.transforms (
    batch_id bigint not null,
    control_revision bigint not null,
    project_fingerprint varchar not null,
    finished_at timestamp not null
);

-- One row per published version of the marts.
create table if not exists raw.publications (
    version bigint not null,
    batch_id bigint not null,
    published_at timestamp not null
);

-- The control store as the cycle saw it; replaced whole.
create table if not exists raw.control_revisions (revision bigint not null);

create table if not exists raw.control_tenants (tenant_id varchar not null, tenant_name varchar not null);

create table if not exists raw.control_ledgers (
    ledger_id varchar not null,
    tenant_id varchar not null,
    network varchar not null,
    ledger_name varchar not null,
    display_name varchar
);

create table if not exists raw.control_subjects (
    subject_key bigint not null,
    subject_id varchar not null,
    kind varchar not null,
    tenant_id varchar not null,
    ledger_id varchar not null,
    network varchar not null,
    address varchar not null,
    symbol varchar,
    name varchar,
    external_id varchar,
    created_at timestamp not null
);

create table if not exists raw.control_windows (
    window_key bigint not null,
    subject_key bigint not null,
    opened_at timestamp not null,
    closed_at timestamp
);

-- The network definitions in force; replaced whole.
create table if not exists raw.networks (
    network varchar not null,
    display_name varchar not null,
    family varchar not null,
    chain_id bigint not null,
    is_testnet boolean not null,
    is_enabled boolean not null,
    disabled_reason varchar,
    native_symbol varchar not null,
    native_decimals integer not null
);

create table if not exists raw.common_tokens (
    network varchar not null,
    token_address varchar not null,
    symbol varchar not null,
    decimals integer not null
);

-- What the node of each network said last.
create table if not exists raw.network_states (
    network varchar not null,
    status varchar not null,
    status_since timestamp not null,
    detail varchar,
    head_number bigint,
    head_hash varchar,
    head_time timestamp,
    final_number bigint,
    has_archive boolean,
    has_traces boolean,
    has_multicall boolean,
    failures_in_a_row integer not null,
    probed_at timestamp not null,
    batch_id bigint not null
);

-- Tracking windows resolved to blocks; to_block is null while the window is open.
create table if not exists raw.window_ranges (
    window_key bigint not null,
    subject_key bigint not null,
    network varchar not null,
    from_block bigint not null,
    to_block bigint
);

-- What has been collected, also where there was nothing.
create table if not exists raw.coverage (
    network varchar not null,
    subject_kind varchar not null,
    address varchar not null,
    from_block bigint not null,
    to_block bigint not null,
    row_count bigint not null,
    provider varchar not null,
    collected_at timestamp not null,
    batch_id bigint not null
);

-- What could not be collected, by cycle.
create table if not exists raw.collection_failures (
    batch_id bigint not null,
    network varchar not null,
    call varchar not null,
    from_block bigint,
    to_block bigint,
    detail varchar not null,
    failed_at timestamp not null
);

-- What was collected, by cycle and network.
create table if not exists raw.collections (
    batch_id bigint not null,
    network varchar not null,
    table_name varchar not null,
    from_block bigint,
    to_block bigint,
    row_count bigint not null
);

-- Reorganisations that were seen and repaired.
create table if not exists raw.reorganisations (
    batch_id bigint not null,
    network varchar not null,
    ancestor_block bigint not null,
    orphaned_block bigint not null,
    orphaned_hash varchar not null,
    canonical_hash varchar not null,
    removed_rows bigint not null,
    seen_at timestamp not null
);

-- Headers: the whole unfinalised tail, range ends, and every block with rows or observations.
create table if not exists raw.blocks (
    network varchar not null,
    block_number bigint not null,
    block_hash varchar not null,
    parent_hash varchar not null,
    block_time timestamp not null,
    batch_id bigint not null
);

create table if not exists raw.token_transfers (
    network varchar not null,
    block_number bigint not null,
    block_hash varchar not null,
    transaction_index integer not null,
    transaction_hash varchar not null,
    log_index integer not null,
    token_address varchar not null,
    from_address varchar not null,
    to_address varchar not null,
    amount_raw bignum not null,
    batch_id bigint not null
);

-- Transactions that tracked wallets sent or received.
create table if not exists raw.transactions (
    network varchar not null,
    block_number bigint not null,
    block_hash varchar not null,
    transaction_index integer not null,
    transaction_hash varchar not null,
    from_address varchar not null,
    to_address varchar,
    created_address varchar,
    value_raw bignum not null,
    fee_raw bignum,
    gas_used bigint,
    is_success boolean,
    batch_id bigint not null
);

create table if not exists raw.token_metadata (
    network varchar not null,
    token_address varchar not null,
    contract_status varchar not null,
    standard varchar,
    symbol varchar,
    name varchar,
    decimals integer,
    detail varchar,
    read_at timestamp not null
);

-- Balances read from the node, as they were at the end of the block; null where the contract gave no number.
create table if not exists raw.balance_observations (
    network varchar not null,
    token_address varchar not null,
    holder_address varchar not null,
    block_number bigint not null,
    block_hash varchar not null,
    quantity_raw bignum,
    purpose varchar not null,
    batch_id bigint not null
);

create table if not exists raw.supply_observations (
    network varchar not null,
    token_address varchar not null,
    block_number bigint not null,
    block_hash varchar not null,
    total_supply_raw bignum,
    batch_id bigint not null
);

-- Up to which batch every reading that the network owed was made.
create table if not exists raw.observed_batches (network varchar not null, batch_id bigint not null);

-- Windows whose opening balances were read.
create table if not exists raw.opened_windows (window_key bigint not null);

-- What of a subject the marts must compute anew; written in the transaction that changed it.
create table if not exists raw.changes (
    batch_id bigint not null,
    subject_key bigint not null,
    from_block bigint not null,
    to_block bigint,
    reason varchar not null
);
