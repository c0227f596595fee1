"""Columns that tables of several sources have."""

from pipelines.tables.table import BIGINT, VARCHAR, Column

NETWORK = Column("network", VARCHAR, "Name of the network, from the definitions.")
BATCH_ID = Column("batch_id", BIGINT, "Cycle that wrote the row.")
TENANT_ID = Column("tenant_id", VARCHAR, "Public id of the tenant.")
SUBJECT_KEY = Column("subject_key", BIGINT, "Integer key of the tracked token or wallet.")
OPERATION_KEY = Column("operation_key", BIGINT, "Integer key of the operation.")
ADDRESS = Column("address", VARCHAR, "Contract of the token, or the wallet; lower-case 0x text.")
BLOCK_NUMBER = Column("block_number", BIGINT, "Number of the block.")
BLOCK_HASH = Column("block_hash", VARCHAR, "Hash of the block, lower-case 0x text.")
TOKEN_ADDRESS = Column(
    "token_address", VARCHAR, "Contract of the token, lower-case 0x text; `native` for the native asset."
)
