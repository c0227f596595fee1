"""What the networks said: definitions, node states, blocks, transfers, transactions and readings of contracts."""

from pipelines.tables.common import BATCH_ID, BLOCK_HASH, BLOCK_NUMBER, NETWORK, SUBJECT_KEY, TOKEN_ADDRESS
from pipelines.tables.families import ROW_TABLES
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

# What the mapping of each family's raw tables gives: `pipelines/extract/<family>/movements.sql`.
_MOVEMENT = (
    NETWORK,
    BLOCK_NUMBER,
    Column("block_hash", VARCHAR, "Hash of the block."),
    Column("transaction_position", INTEGER, "Position of the transaction in its block."),
    Column(
        "entry_position",
        INTEGER,
        "Position among the entries of the block, of an Internal movement among those of its transaction; -1: it is "
        "the transaction's own.",
    ),
    Column("transaction_hash", VARCHAR, "Hash of the transaction."),
    Column(
        "kind",
        VARCHAR,
        "Transfer, Internal (inside a transaction), Fee, Mint or Burn. It alone says whether the supply changes: Mint "
        "adds to it, Burn takes from it.",
    ),
    Column("asset", VARCHAR, "Address of the token; `native` for the native asset."),
    optional(
        "from_address",
        VARCHAR,
        "Whose balance it takes from; null: nobody's, or those of several parties, whom the transaction's parties are "
        "to list.",
    ),
    optional("to_address", VARCHAR, "Whose balance it adds to; null: as for from_address."),
    optional("nobody_address", VARCHAR, "What is shown in the place of a party that is nobody; null: nothing."),
    optional("amount_raw", BIGNUM, "Amount in base units; null where it is not known."),
    optional("is_failed", BOOLEAN, "Whether it failed and moved nothing; null where it is not known."),
    BATCH_ID,
)
_SIDE = (
    *_MOVEMENT,
    Column("direction", VARCHAR, "Out of the party's balance, or In."),
    Column("holder_address", VARCHAR, "The party."),
    optional("counterparty_address", VARCHAR, "What is shown as the other party; null: nobody."),
    Column("movement_raw", BIGNUM, "What it does to the party's balance, in base units; 0 for an unknown amount."),
)
_OWED_TO = optional(
    "owed_to",
    BATCHES,
    "The tenants to whose views it is owed, each with the cycle since which it is: only they see it.",
)

SOURCE = Source(
    "chain",
    "What the networks said: definitions, node states, blocks, transfers, transactions and readings of contracts.",
    tables=(
        Table(
            "networks",
            "Network definitions in force.",
            "One row per network.",
            NETWORK,
            Column("display_name", VARCHAR, "Name for people."),
            Column("family", VARCHAR, "Family: address format and extraction."),
            optional("chain_id", BIGINT, "Number of the network, where its family has one."),
            Column("is_testnet", BOOLEAN, "Whether it is a test network."),
            Column("is_enabled", BOOLEAN, "Whether it can be collected."),
            optional("disabled_reason", VARCHAR, "Why it cannot."),
            Column("native_symbol", VARCHAR, "Symbol of the native asset."),
            Column("native_decimals", INTEGER, "Decimals of the native asset."),
            optional(
                "max_requests_per_day", BIGINT, "Most requests of a day, live tracking's first; null: without bound."
            ),
        ),
        Table(
            "common_tokens",
            "Well-known contracts of the definitions.",
            "One row per network and contract.",
            NETWORK,
            TOKEN_ADDRESS,
            Column("symbol", VARCHAR, "Symbol of the token."),
            Column("decimals", INTEGER, "Decimals; null when unknown."),
        ),
        Table(
            "network_states",
            "What the node of each network said last.",
            "One row per network.",
            NETWORK,
            Column("status", VARCHAR, "Healthy, Unreachable, Unhealthy, WrongChain or ClockSkew."),
            Column("status_since", TIMESTAMP, "Since when the status is that, UTC."),
            optional("detail", VARCHAR, "Explanation for people."),
            optional("head_number", BIGINT, "Newest block of the node."),
            optional("head_hash", VARCHAR, "Its hash."),
            optional("head_time", TIMESTAMP, "Its time, UTC."),
            optional("final_number", BIGINT, "Newest final block."),
            Column("failures_in_a_row", INTEGER, "Cycles in a row that could not reach the node."),
            Column("probed_at", TIMESTAMP, "When the node was asked, UTC."),
            BATCH_ID,
            optional(
                "capabilities",
                TEXTS,
                "What the node can do: past_balances, traces, and words of the family's own; null: not asked yet.",
            ),
        ),
        Table(
            "blocks",
            "Headers of the canonical chain: the unfinalised tail (its newest 10,000 blocks), range ends, and "
            "every block with rows or observations.",
            "One row per network and number.",
            NETWORK,
            BLOCK_NUMBER,
            BLOCK_HASH,
            Column("parent_hash", VARCHAR, "Hash of the block before."),
            Column("block_time", TIMESTAMP, "Time of the block, UTC."),
            BATCH_ID,
            optional(
                "is_tail",
                BOOLEAN,
                "Whether it was stored as a block of the unfinalised tail, whoever tracks what; null: unknown.",
            ),
        ),
        *ROW_TABLES.values(),
        Table(
            "token_metadata",
            "What contracts said about themselves when they were read for a tenant.",
            "One row per network, contract and tenant.",
            NETWORK,
            TOKEN_ADDRESS,
            Column("contract_status", VARCHAR, "Unknown, Fungible, NotFungible or NoContract."),
            optional("standard", VARCHAR, "Standard that it follows, as its family calls it; null when unknown."),
            optional("symbol", VARCHAR, "Symbol of the contract; null when it gives none."),
            optional("name", VARCHAR, "Name of the contract; null when it gives none."),
            optional("decimals", INTEGER, "Decimals; null when unknown."),
            optional("detail", VARCHAR, "Explanation for people."),
            Column("read_at", TIMESTAMP, "When it was read, UTC."),
            optional("tenant_id", VARCHAR, "Public id of the tenant to whom the reading was owed, ten_."),
        ),
        Table(
            "token_creations",
            "First blocks at whose end a token's contract was there, where the node could tell: nobody held "
            "anything before.",
            "One row per network, contract and tenant.",
            NETWORK,
            Column("token_address", VARCHAR, "Contract of the token, lower-case 0x text."),
            Column("block_number", BIGINT, "First block at whose end the contract was there. Unit: block number."),
            optional("tenant_id", VARCHAR, "Public id of the tenant who asked for a history from creation, ten_."),
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
            optional("quantity_raw", BIGNUM, "Balance in base units; null when the contract gave no number."),
            Column(
                "purpose",
                VARCHAR,
                "What it was read for: Anchor, Check, Sample, Final, Closing, Narrowing, Difference or Attestation.",
            ),
            Column("batch_id", BIGINT, "Cycle that read it, or since which it is owed to one more tenant."),
            _OWED_TO,
        ),
        Table(
            "found_holders",
            "Holders of tracked tokens whom no movement names: they were searched for, and their balance was read.",
            "One row per token as tracked and holder.",
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
            optional("total_supply_raw", BIGNUM, "Total supply in base units; null when the contract gave no number."),
            Column("batch_id", BIGINT, "Cycle that read it, or since which it is owed to one more tenant."),
            _OWED_TO,
        ),
    ),
    views=(
        Table(
            "movements",
            "Who moved what, inside some tenant's view: the movements of every family, a view on their tables.",
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
