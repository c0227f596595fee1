"""Data from the networks: definitions, node states, blocks, transfers, transactions and readings of contracts."""

from pipelines.tables.common import BATCH_ID, BLOCK_HASH, BLOCK_NUMBER, NETWORK, SUBJECT_KEY, TOKEN_ADDRESS
from pipelines.tables.families import DERIVED_TABLES, ROW_TABLES
from pipelines.tables.table import (
    BATCHES,
    BIGINT,
    BIGNUM,
    BOOLEAN,
    INTEGER,
    TEXTS,
    TIMESTAMP,
    VARCHAR,
    Column,
    Source,
    Table,
    optional,
)

# Columns that each family's `pipelines/extract/<family>/movements.sql` returns.
_MOVEMENT = (
    NETWORK,
    BLOCK_NUMBER,
    Column("block_hash", VARCHAR, "Hash of the block."),
    Column("transaction_position", INTEGER, "Position of the transaction in its block."),
    Column(
        "entry_position",
        INTEGER,
        "Position among the entries of the block, or for an Internal movement among those of its "
        "transaction; -1: the movement belongs to the transaction itself.",
    ),
    Column("transaction_hash", VARCHAR, "Hash of the transaction."),
    Column(
        "kind",
        VARCHAR,
        "Transfer, Internal (inside a transaction), Fee, Mint or Burn. The kind alone decides whether "
        "the supply changes: Mint adds to it, Burn takes from it.",
    ),
    Column("asset", VARCHAR, "Address of the token; `native` for the native asset."),
    optional(
        "from_address",
        VARCHAR,
        "Party that loses the amount; null if there is none, or if there are several, "
        "which must then be in the list of the transaction's parties.",
    ),
    optional(
        "to_address",
        VARCHAR,
        "Party that gains the amount; null if there is none, or if there are several, as in from_address.",
    ),
    optional("nobody_address", VARCHAR, "Address to show in place of a missing party; null if there is none."),
    optional("amount_raw", BIGNUM, "Amount in base units; null where it is unknown."),
    optional("is_failed", BOOLEAN, "True if the movement failed and moved nothing; null where that is unknown."),
    optional(
        "fee_raw",
        BIGNUM,
        "Fee in base units that the sender pays on top of the amount; null where the fee is a movement of its own.",
    ),
    optional(
        "fee_status",
        VARCHAR,
        "Paid by the party; Shared by several senders, and so part of the amount; NotPaid by the party; NotRead. Null "
        "where the fee is a movement of its own.",
    ),
    optional(
        "counterparties",
        TEXTS,
        "Addresses of the other side, of which there may be several; null where they are unknown, or where "
        "from_address and to_address name both sides.",
    ),
    optional("counterparty_count", INTEGER, "Number of the other side's parties; null as in counterparties."),
    optional("detail", VARCHAR, "The family's own description of the transaction, as JSON; null if there is none."),
    BATCH_ID,
)
_SIDE = (
    *_MOVEMENT,
    Column("direction", VARCHAR, "Out if the amount leaves the balance of the party, else In."),
    Column("holder_address", VARCHAR, "The party."),
    optional("counterparty_address", VARCHAR, "Address to show as the other party; null if there is none."),
    Column("movement_raw", BIGNUM, "Change of the party's balance in base units; 0 for an unknown amount."),
)
_OWED_TO = optional(
    "visible_to",
    BATCHES,
    "Tenants that may see the reading in their views, each with the first cycle that may show it.",
)

SOURCE = Source(
    "chain",
    "Data from the networks: definitions, node states, blocks, transfers, transactions and readings of contracts.",
    tables=(
        Table(
            "networks",
            "Network definitions in force.",
            "One row per network.",
            NETWORK,
            Column("display_name", VARCHAR, "Display name."),
            Column("family", VARCHAR, "Family of the network: it defines the address format and the extraction."),
            optional("chain_id", BIGINT, "Chain id of the network; null where its family has none."),
            Column("is_testnet", BOOLEAN, "True for a test network."),
            Column("is_enabled", BOOLEAN, "True if the network can be collected."),
            optional("disabled_reason", VARCHAR, "Reason why it cannot be collected; null when it can."),
            Column("native_symbol", VARCHAR, "Symbol of the native asset."),
            Column("native_decimals", INTEGER, "Decimals of the native asset."),
            optional(
                "max_requests_per_day",
                BIGINT,
                "Maximum number of requests per day; null if unlimited. Live tracking takes its requests first.",
            ),
            optional(
                "is_defined",
                BOOLEAN,
                "False if ledgers use the network and its definition is gone: this is the last one. Otherwise null.",
            ),
        ),
        Table(
            "common_tokens",
            "Well-known contracts from the network definitions.",
            "One row per network and contract.",
            NETWORK,
            TOKEN_ADDRESS,
            Column("symbol", VARCHAR, "Symbol of the token."),
            Column("decimals", INTEGER, "Decimals; null when unknown."),
        ),
        Table(
            "network_states",
            "Last known state of each network's node.",
            "One row per network.",
            NETWORK,
            Column(
                "status",
                VARCHAR,
                "Healthy, Inconsistent, Unreachable, Unhealthy, WrongChain, ClockSkew or ChainReset.",
            ),
            Column("status_since", TIMESTAMP, "Time since which the status applies, UTC."),
            optional("detail", VARCHAR, "Explanation in words."),
            optional("head_number", BIGINT, "Newest block of the node."),
            optional("head_hash", VARCHAR, "Hash of the newest block of the node."),
            optional("head_time", TIMESTAMP, "Time of the newest block of the node, UTC."),
            optional("final_number", BIGINT, "Newest final block."),
            Column("failures_in_a_row", INTEGER, "Number of consecutive cycles that could not reach the node."),
            Column("probed_at", TIMESTAMP, "Time of the probe, UTC."),
            BATCH_ID,
            optional(
                "capabilities",
                TEXTS,
                "Capabilities of the node: past_balances, traces, provable, and those that the family defines; null "
                "if not probed yet.",
            ),
        ),
        Table(
            "known_chains",
            "Identity of each network's chain, and its newest settled block.",
            "One row per network.",
            NETWORK,
            optional(
                "genesis_hash", VARCHAR, "Hash of block 0; null before it was read, empty if the node does not have it."
            ),
            optional(
                "settled_number",
                BIGINT,
                "Newest settled block: it was final for an hour, and no answer of a node removes it.",
            ),
            optional("settling_number", BIGINT, "Final block that is settled next."),
            optional("settling_since", TIMESTAMP, "Time since which that block is final, UTC."),
            optional(
                "contradicting_cycles",
                INTEGER,
                "Number of consecutive cycles in which the node's chain lacked stored blocks; null if it has them.",
            ),
            optional("contradicting_number", BIGINT, "Newest block of the node in the last of these cycles."),
            optional("contradicting_hash", VARCHAR, "Hash of that block."),
            optional("contradicting_batch", BIGINT, "The last of these cycles."),
        ),
        Table(
            "blocks",
            "Headers of the canonical chain: the unfinalised tail (its newest 10,000 blocks), range ends, and "
            "every block with rows or observations.",
            "One row per network and number.",
            NETWORK,
            BLOCK_NUMBER,
            BLOCK_HASH,
            optional("parent_hash", VARCHAR, "Hash of the block before; null where a file of a data set has none."),
            Column("block_time", TIMESTAMP, "Time of the block, UTC."),
            BATCH_ID,
            optional(
                "is_tail",
                BOOLEAN,
                "True if the block was stored as part of the unfinalised tail, independent of tracking; null if "
                "unknown.",
            ),
        ),
        *ROW_TABLES.values(),
        *DERIVED_TABLES.values(),
        Table(
            "token_metadata",
            "Data that contracts returned about themselves when they were read for a tenant.",
            "One row per network, contract and tenant.",
            NETWORK,
            TOKEN_ADDRESS,
            Column("contract_status", VARCHAR, "Unknown, Fungible, NotFungible or NoContract."),
            optional(
                "standard", VARCHAR, "Standard that the contract follows, as its family calls it; null when unknown."
            ),
            optional("symbol", VARCHAR, "Symbol of the contract; null when it returns none."),
            optional("name", VARCHAR, "Name of the contract; null when it returns none."),
            optional("decimals", INTEGER, "Decimals; null when unknown."),
            optional("detail", VARCHAR, "Explanation in words."),
            Column("read_at", TIMESTAMP, "Time of the reading, UTC."),
            optional("tenant_id", VARCHAR, "Public id of the tenant that the contract was read for, ten_."),
        ),
        Table(
            "metadata_checks",
            "Latest comparison of a contract's metadata with a reading at another block.",
            "One row per network, contract and tenant. A contract that an older release read has none until it is read "
            "again.",
            NETWORK,
            TOKEN_ADDRESS,
            optional("tenant_id", VARCHAR, "Public id of the tenant that the contract was read for, ten_."),
            Column(
                "metadata_status",
                VARCHAR,
                "Unconfirmed: read once. Confirmed: a reading at another block agreed. Contradicted: the latest "
                "reading differs, and the row of token_metadata stays in force.",
            ),
            BLOCK_NUMBER,
            Column("read_at", TIMESTAMP, "Time of the latest reading, UTC."),
            optional("confirmed_at", TIMESTAMP, "Time at which a reading last agreed, UTC; null while none did."),
            optional("found_at", TIMESTAMP, "Time of the first reading with the values of found_*, UTC."),
            optional("found_contract_status", VARCHAR, "The contract_status that differs; null unless Contradicted."),
            optional("found_standard", VARCHAR, "Standard in the reading that differs; null if it had none."),
            optional("found_symbol", VARCHAR, "Symbol in the reading that differs; null if it had none."),
            optional("found_name", VARCHAR, "Name in the reading that differs; null if it had none."),
            optional("found_decimals", INTEGER, "Decimals in the reading that differs; null if it had none."),
        ),
        Table(
            "token_creations",
            "First blocks at the end of which a token's contract existed, where the node could tell. No "
            "address held the token before.",
            "One row per network, contract and tenant.",
            NETWORK,
            Column("token_address", VARCHAR, "Contract of the token, lower-case 0x text."),
            Column("block_number", BIGINT, "First block at the end of which the contract existed. Unit: block number."),
            optional("tenant_id", VARCHAR, "Public id of the tenant that requested a history from creation, ten_."),
        ),
        Table(
            "balance_observations",
            "Balances read from the node, as at the end of the block.",
            "One row per network, token, holder and block.",
            NETWORK,
            TOKEN_ADDRESS,
            Column("holder_address", VARCHAR, "Holder, lower-case 0x text."),
            BLOCK_NUMBER,
            BLOCK_HASH,
            optional("quantity_raw", BIGNUM, "Balance in base units; null when the contract returned no number."),
            Column(
                "purpose",
                VARCHAR,
                "Purpose of the reading: Anchor, Check, Sample, Final, Closing, Narrowing, Difference or Attestation.",
            ),
            Column("batch_id", BIGINT, "Cycle that read it, or that made it visible to one more tenant."),
            _OWED_TO,
        ),
        Table(
            "found_holders",
            "Holders of tracked tokens that no movement names: a search found them and read their balances.",
            "One row per tracked token and holder.",
            NETWORK,
            SUBJECT_KEY,
            Column("holder_address", VARCHAR, "Holder, lower-case 0x text."),
            Column("batch_id", BIGINT, "Cycle that found it."),
        ),
        Table(
            "supply_observations",
            "Total supplies read from the node, as at the end of the block.",
            "One row per network, token and block.",
            NETWORK,
            TOKEN_ADDRESS,
            BLOCK_NUMBER,
            BLOCK_HASH,
            optional(
                "total_supply_raw", BIGNUM, "Total supply in base units; null when the contract returned no number."
            ),
            Column("batch_id", BIGINT, "Cycle that read it, or that made it visible to one more tenant."),
            _OWED_TO,
        ),
    ),
    views=(
        Table(
            "movements",
            "Movements of every family inside some tenant's view; a view on the tables of the families.",
            "One row per network, block, transaction, kind and entry.",
            *_MOVEMENT,
        ),
        Table(
            "movement_sides",
            "Each movement as each of its parties sees it; a view on movements.",
            "One row per movement and party.",
            *_SIDE,
        ),
    ),
)
