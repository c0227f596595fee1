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
    created_at timestamp not null,
    pair_key bigint
);

-- Warehouses of the first releases have none.
alter table raw.control_subjects add column if not exists pair_key bigint;

create table if not exists raw.control_windows (
    window_key bigint not null,
    subject_key bigint not null,
    opened_at timestamp not null,
    closed_at timestamp
);

create table if not exists raw.control_history_requests (
    operation_key bigint not null,
    subject_key bigint not null,
    from_text varchar not null,
    to_text varchar not null,
    native varchar,
    status varchar not null,
    is_cancelled boolean not null,
    created_at timestamp not null
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

-- Tracking windows and history requests resolved to blocks; to_block is null while a window is open. native is how a
-- wallet's native value is collected: full, with its transactions, or balance-only.
create table if not exists raw.view_ranges (
    origin varchar not null,
    origin_key bigint not null,
    subject_key bigint not null,
    network varchar not null,
    from_block bigint not null,
    to_block bigint,
    native varchar
);

drop table if exists raw.window_ranges;
drop table if exists raw.opened_windows;

-- What has been collected, also where there was nothing: token transfers of a token or a wallet, and (`native`) the
-- transactions and internal transfers of a wallet.
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

-- Reorganisations that were seen and repaired, and false block times: both hashes are the same then.
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

-- Headers: the unfinalised tail (its newest 10,000 blocks), range ends, and every block with rows or observations.
create table if not exists raw.blocks (
    network varchar not null,
    block_number bigint not null,
    block_hash varchar not null,
    parent_hash varchar not null,
    block_time timestamp not null,
    batch_id bigint not null,
    is_tail boolean
);

-- Of the blocks of warehouses of the first releases nobody knows it.
alter table raw.blocks add column if not exists is_tail boolean;

-- Networks whose stored headers were held against each other, and that no later block contradicted since: times that come
-- later are checked before they are stored.
create table if not exists raw.checked_times (network varchar not null);

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

-- Native value that calls inside transactions moved from or to tracked wallets.
create table if not exists raw.internal_transfers (
    network varchar not null,
    block_number bigint not null,
    block_hash varchar not null,
    transaction_index integer not null,
    transaction_hash varchar not null,
    trace_index integer not null,
    from_address varchar not null,
    to_address varchar not null,
    amount_raw bignum not null,
    kind varchar not null,
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

-- First blocks at whose end a token's contract was there, where the node could tell: nobody held anything before.
create table if not exists raw.token_creations (
    network varchar not null,
    token_address varchar not null,
    block_number bigint not null
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

-- Covered ranges whose opening balances were read, and up to where what moved in them was; -1: a token that is among the
-- holdings of its tenant's wallets.
create table if not exists raw.opened_ranges (
    subject_key bigint not null,
    from_block bigint not null,
    to_block bigint not null
);

-- Covered ranges that ended, and whose closing balances were read.
create table if not exists raw.closed_ranges (
    subject_key bigint not null,
    from_block bigint not null,
    to_block bigint not null
);

-- Pairs whose readings a reorganisation removed: they are owed again.
create table if not exists raw.lost_readings (
    network varchar not null,
    token_address varchar not null,
    holder_address varchar not null
);

-- Tokens whose balances changed otherwise than their transfers say: every holder is read until all were since the block.
create table if not exists raw.suspected_tokens (
    network varchar not null,
    token_address varchar not null,
    since_block bigint not null
);

-- What became of each history request: its range when it was resolved, why it went no further, and how fast it goes.
create table if not exists raw.history_requests (
    operation_key bigint not null,
    subject_key bigint not null,
    network varchar not null,
    from_block bigint,
    to_block bigint,
    native varchar,
    note varchar,
    error varchar,
    status varchar not null,
    worked_blocks bigint not null,
    worked_seconds double not null
);

-- Collected ranges that were read a second time once they were final, or were final when they were collected.
create table if not exists raw.verified_ranges (
    network varchar not null,
    subject_kind varchar not null,
    address varchar not null,
    from_block bigint not null,
    to_block bigint not null
);

-- What the second reading found otherwise than the first.
create table if not exists raw.verifications (
    batch_id bigint not null,
    network varchar not null,
    from_block bigint not null,
    to_block bigint not null,
    provider varchar not null,
    stored_rows bigint not null,
    read_rows bigint not null,
    verified_at timestamp not null
);

-- What of a subject the marts must compute anew; written in the transaction that changed it.
create table if not exists raw.changes (
    batch_id bigint not null,
    subject_key bigint not null,
    from_block bigint not null,
    to_block bigint,
    reason varchar not null
);

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

-- The collected parts of each subject's view, united: what its tenant may see. Where a wallet's transactions were asked
-- for, a part counts once they were collected too, and is in the rows of is_native as well.
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
