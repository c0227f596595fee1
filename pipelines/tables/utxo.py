"""Rows of chains of outputs, as addresses see them: transactions, received outputs, and outputs found by scans."""

from pipelines.tables.common import BATCH_ID, BLOCK_HASH, BLOCK_NUMBER, NETWORK
from pipelines.tables.table import BIGINT, BIGNUM, BOOLEAN, INTEGER, TEXTS, VARCHAR, Column, RowTable, Table, optional

ADDRESS = Column("address", VARCHAR, "The watched address, or `keys:` and the identity of a wallet of keys.")
OUTPUT_KEY = Column(
    "output_key", BIGINT, "The first 8 bytes of the transaction's id; look-ups compare it before the id itself."
)
OUTPUT_HASH = Column("transaction_hash", VARCHAR, "Id of the transaction that made the output.")
OUTPUT_INDEX = Column("output_index", INTEGER, "Position of the output in its transaction.")
PAID_ADDRESS = optional(
    "paid_address", VARCHAR, "Address of the output, where it belongs to a wallet of keys; null for a single address."
)
ADDRESS_INDEX = optional("address_index", INTEGER, "Index of paid_address in its branch; null for a single address.")
TRANSACTION_INDEX = Column("transaction_index", INTEGER, "Position of the transaction in its block.")

UTXO_TRANSACTIONS = RowTable(
    "utxo_transactions",
    "Transactions with an input or an output of a watched address, as that address sees them.",
    "One row per network, block, transaction and address.",
    NETWORK,
    BLOCK_NUMBER,
    BLOCK_HASH,
    TRANSACTION_INDEX,
    Column("transaction_hash", VARCHAR, "Id of the transaction."),
    ADDRESS,
    Column("is_coinbase", BOOLEAN, "True if the transaction pays the miner."),
    Column("spent_raw", BIGNUM, "Sum of the address's inputs, in base units."),
    Column("received_raw", BIGNUM, "Sum of the address's outputs, in base units."),
    optional("fee_raw", BIGNUM, "Fee in base units where the address paid all of it; null otherwise."),
    Column(
        "fee_status",
        VARCHAR,
        "Paid by the address; Shared by several senders; NotPaid, because others sent; NotRead, because an input is "
        "unknown.",
    ),
    optional(
        "counterparties",
        TEXTS,
        "The other side's addresses: of a sender those that receive, of a recipient those that send. At most the first "
        "100. Null where an input is unknown.",
    ),
    optional(
        "counterparty_count",
        INTEGER,
        "Number of the other side's parties; scripts without an address count too. Null where an input is unknown.",
    ),
    Column("detail", VARCHAR, "Inputs and outputs of the transaction, and its block's own time, as JSON."),
    BATCH_ID,
    kinds=frozenset({"native"}),
    key=("block_number", "transaction_index", "address"),
    parties=("address",),
    # Inputs that spend outputs from before a scan are not recognised.
    known="spent_raw",
)
UTXO_OUTPUTS = RowTable(
    "utxo_outputs",
    "Outputs of watched addresses, by which later inputs are recognised.",
    "One row per network, block, transaction, output and watched address or wallet of keys.",
    NETWORK,
    BLOCK_NUMBER,
    BLOCK_HASH,
    TRANSACTION_INDEX,
    OUTPUT_HASH,
    OUTPUT_INDEX,
    OUTPUT_KEY,
    ADDRESS,
    Column("amount_raw", BIGNUM, "Amount in base units."),
    BATCH_ID,
    PAID_ADDRESS,
    ADDRESS_INDEX,
    kinds=frozenset({"native"}),
    key=("block_number", "transaction_index", "output_index", "address"),
    parties=("address",),
)
UTXO_OPENINGS = RowTable(
    "utxo_openings",
    "Unspent outputs that a scan found where coverage of an address begins, from blocks before it. The output of index "
    "-1 is the scan itself.",
    "One row per network, first covered block, address and output.",
    NETWORK,
    BLOCK_NUMBER,
    BLOCK_HASH,
    ADDRESS,
    Column("scanned_block", BIGINT, "Block after which the outputs were unspent."),
    OUTPUT_HASH,
    OUTPUT_INDEX,
    OUTPUT_KEY,
    Column("amount_raw", BIGNUM, "Amount in base units; of the scan, the address's balance."),
    BATCH_ID,
    PAID_ADDRESS,
    ADDRESS_INDEX,
    kinds=frozenset(),
    key=("block_number", "address", "transaction_hash", "output_index"),
    parties=("address",),
)

UTXO_KEY_RANGES = RowTable(
    "utxo_key_ranges",
    "Indices for which rows of wallets of keys were collected.",
    "One row per network, first block of a collection, and wallet.",
    NETWORK,
    BLOCK_NUMBER,
    BLOCK_HASH,
    ADDRESS,
    Column("scanned_to", BIGINT, "Last index of each branch from this collection on."),
    BATCH_ID,
    kinds=frozenset(),
    key=("block_number", "address"),
    parties=("address",),
)

UTXO_SCRIPTS = Table(
    "utxo_scripts",
    "Output scripts of wallets of keys. They follow from the keys, and never change.",
    "One row per network, wallet, branch and index.",
    NETWORK,
    Column("address", VARCHAR, "`keys:` and the identity of the wallet of keys."),
    Column("branch", INTEGER, "Branch of the wallet: 0 or 1."),
    Column("address_index", INTEGER, "Index in the branch."),
    Column("script", VARCHAR, "The output script, hexadecimal."),
    Column("paid_address", VARCHAR, "Address of the script."),
)

TABLES = (UTXO_TRANSACTIONS, UTXO_OUTPUTS, UTXO_OPENINGS, UTXO_KEY_RANGES)
DERIVED_TABLES = (UTXO_SCRIPTS,)
