"""Rows of EVM networks as their nodes say them: events, transactions, and calls inside transactions."""

from pipelines.tables.common import BATCH_ID, BLOCK_HASH, BLOCK_NUMBER, NETWORK, TOKEN_ADDRESS
from pipelines.tables.table import BIGINT, BIGNUM, BOOLEAN, INTEGER, VARCHAR, Column, RowTable, optional

TRANSACTION_INDEX = Column("transaction_index", INTEGER, "Position of the transaction in its block.")
TRANSACTION_HASH = Column("transaction_hash", VARCHAR, "Hash of the transaction, lower-case 0x text.")
FROM_ADDRESS = Column("from_address", VARCHAR, "Sender, lower-case 0x text.")

TOKEN_TRANSFERS = RowTable(
    "token_transfers",
    "ERC-20 Transfer events inside some tenant's view.",
    "One row per network, block, transaction index and log index.",
    NETWORK,
    BLOCK_NUMBER,
    BLOCK_HASH,
    TRANSACTION_INDEX,
    TRANSACTION_HASH,
    Column("log_index", INTEGER, "Position of the event in its block; some networks count it in each transaction."),
    TOKEN_ADDRESS,
    FROM_ADDRESS,
    Column("to_address", VARCHAR, "Recipient, lower-case 0x text."),
    Column("amount_raw", BIGNUM, "Amount in base units, 0 to 2^256 - 1."),
    BATCH_ID,
    kinds=frozenset({"token", "wallet"}),
    key=("block_number", "transaction_index", "log_index"),
    parties=("from_address", "to_address"),
    token="token_address",
)
TRANSACTIONS = RowTable(
    "transactions",
    "Transactions that tracked wallets sent or received.",
    "One row per network, block and transaction index.",
    NETWORK,
    BLOCK_NUMBER,
    BLOCK_HASH,
    TRANSACTION_INDEX,
    TRANSACTION_HASH,
    FROM_ADDRESS,
    optional("to_address", VARCHAR, "Recipient; null for a contract creation."),
    optional("created_address", VARCHAR, "Contract that was created; null otherwise."),
    Column("value_raw", BIGNUM, "Native value in base units, also of failed transactions."),
    optional("fee_raw", BIGNUM, "Fee paid by the sender in base units; null when unknown."),
    optional("gas_used", BIGINT, "Gas used."),
    optional("is_success", BOOLEAN, "True if the transaction succeeded; null when the receipt does not say."),
    BATCH_ID,
    kinds=frozenset({"native"}),
    key=("block_number", "transaction_index"),
    parties=("from_address", "to_address", "created_address"),
)
INTERNAL_TRANSFERS = RowTable(
    "internal_transfers",
    "Native value that calls inside transactions moved from or to tracked wallets, as the node traced it.",
    "One row per network, block, transaction and trace.",
    NETWORK,
    BLOCK_NUMBER,
    BLOCK_HASH,
    TRANSACTION_INDEX,
    TRANSACTION_HASH,
    Column("trace_index", INTEGER, "Position of the call in its transaction, depth first."),
    FROM_ADDRESS,
    Column("to_address", VARCHAR, "Recipient, lower-case 0x text."),
    Column("amount_raw", BIGNUM, "Native value in base units."),
    Column("kind", VARCHAR, "call, create or selfdestruct."),
    BATCH_ID,
    kinds=frozenset({"native"}),
    key=("block_number", "transaction_index", "trace_index"),
    parties=("from_address", "to_address"),
)

TABLES = (TOKEN_TRANSFERS, TRANSACTIONS, INTERNAL_TRANSFERS)
