"""Forms of files with EVM logs or ERC-20 transfers, as public data sets and common tools write them.

Sources of the schemas: AWS Open Data (https://github.com/aws-solutions-library-samples/
guidance-for-digital-assets-on-aws, analytics/consumer/schema/eth.md), cryo (https://github.com/paradigmxyz/cryo,
crates/freeze/src/datasets), ethereum-etl (https://github.com/blockchain-etl/ethereum-etl, docs/schema.md).
"""

from types import MappingProxyType

from pipelines.extract.data_sets import EXPORTED, ColumnKind, FileColumn, FileForm, FileTable
from pipelines.tables.evm import INTERNAL_TRANSFERS, TOKEN_TRANSFERS, TRANSACTIONS

_NUMBER, _BYTES = FileColumn(ColumnKind.NUMBER), FileColumn(ColumnKind.BYTES)
_AMOUNT, _TIME = FileColumn(ColumnKind.AMOUNT), FileColumn(ColumnKind.TIME)
_ABSENT = FileColumn(ColumnKind.ABSENT)
_POSITION = {
    "block_number": _NUMBER,
    "transaction_index": _NUMBER,
    "transaction_hash": _BYTES,
    "log_index": _NUMBER,
}
_PARTIES = {"token_address": _BYTES, "from_address": _BYTES, "to_address": _BYTES}
_NOT_EXACT = "its amounts are floating-point numbers, which are not exact; use {} in their place"

_LARGEST = 2**256 - 1


def _are(form: str, *names: str) -> str:
    return " and ".join(f"regexp_full_match({name}, '{form}')" for name in names)


def _are_hashes(*names: str) -> str:
    return _are("0x[0-9a-f]{64}", *names)


def _are_addresses(*names: str) -> str:
    return _are("0x[0-9a-f]{40}", *names)


def _is_amount(name: str) -> str:
    decimal = f"{_are('[0-9]{1,77}', name)} or ({_are('[0-9]{78}', name)} and {name} <= '{_LARGEST}')"
    return f"({_are_hashes(name)} or {decimal})"


_BLOCK_CHECK = (
    "block_number between 0 and 1152921504606846975 and transaction_index between 0 and 2147483647 "
    f"and {_are_hashes('transaction_hash')}"
)
_CHECKS = {
    TOKEN_TRANSFERS.name: (
        f"{_BLOCK_CHECK} and log_index between 0 and 2147483647 and {_are_addresses(*_PARTIES)} "
        f"and {_is_amount('amount_raw')}"
    ),
    TRANSACTIONS.name: (
        f"{_BLOCK_CHECK} and {_are_addresses('from_address')} and {_is_amount('value_raw')} "
        f"and (to_address is null or {_are_addresses('to_address')}) "
        f"and (created_address is null or {_are_addresses('created_address')}) "
        f"and (fee_raw is null or {_is_amount('fee_raw')}) and (gas_used is null or gas_used >= 0)"
    ),
    INTERNAL_TRANSFERS.name: (
        f"{_BLOCK_CHECK} and trace_index between 0 and 2147483647 and {_are_addresses('from_address', 'to_address')} "
        f"and {_is_amount('amount_raw')} and kind in ('call', 'create', 'selfdestruct')"
    ),
}


def _blocks(number: str, hash_: str) -> FileTable:
    return FileTable(
        "blocks",
        {
            "block_number": _NUMBER._replace(names=(number,)),
            "block_hash": _BYTES._replace(names=(hash_,)),
            "block_time": _TIME._replace(names=("timestamp",)),
        },
    )


def _transfers(table: FileTable, blocks: FileTable | None = None) -> FileForm:
    return FileForm({TOKEN_TRANSFERS.name: table}, _CHECKS, _are_hashes("block_hash"), blocks)


_LOG = {**_POSITION, "address": _BYTES, "topics": FileColumn(ColumnKind.BYTES_LIST), "data": _BYTES}
_SPLIT_TOPICS = dict.fromkeys(("topic0", "topic1", "topic2", "topic3"), _BYTES)
_AWS = FileTable(
    "logs",
    {**_LOG, "block_hash": _BYTES, "block_time": _TIME._replace(names=("block_timestamp",))},
    "logs",
    {"value": _NOT_EXACT.format("the data set's logs")},
)
_CRYO_LOGS = FileTable(
    "logs",
    {**_POSITION, "address": _BYTES, **_SPLIT_TOPICS, "data": _BYTES, "block_hash": _ABSENT, "block_time": _ABSENT},
    "split_logs",
)
_CRYO_TRANSFERS = FileTable(
    "erc20_transfers",
    {
        **_POSITION,
        **_PARTIES,
        "token_address": _BYTES._replace(names=("erc20",)),
        "amount_raw": _AMOUNT._replace(names=("value_binary", "value_string", "value")),
        "block_hash": _ABSENT,
        "block_time": _ABSENT,
    },
    refused={"value_f64": _NOT_EXACT.format("value_binary or value_string (cryo's --u256-types)")},
)
_ETL_LOGS = FileTable(
    "logs",
    {**_LOG, "block_hash": _BYTES, "block_time": _ABSENT},
    "logs",
    {"value": "it has no transaction index, and its amounts may be rounded; use the logs in their place"},
)
_OWN = FileTable(
    "transfers",
    {
        **_POSITION,
        **_PARTIES,
        "block_hash": _BYTES,
        "block_time": _TIME,
        "amount_raw": _AMOUNT._replace(names=("amount",)),
    },
)
_EXPORTED_BLOCK = {
    "block_number": _NUMBER,
    "block_hash": _BYTES,
    "block_time": _TIME,
    "transaction_index": _NUMBER,
    "transaction_hash": _BYTES,
}
_EXPORTED = FileForm(
    {
        TOKEN_TRANSFERS.name: FileTable(
            TOKEN_TRANSFERS.name, {**_EXPORTED_BLOCK, "log_index": _NUMBER, **_PARTIES, "amount_raw": _AMOUNT}
        ),
        TRANSACTIONS.name: FileTable(
            TRANSACTIONS.name,
            {
                **_EXPORTED_BLOCK,
                **dict.fromkeys(("from_address", "to_address", "created_address"), _BYTES),
                "value_raw": _AMOUNT,
                "fee_raw": _AMOUNT,
                "gas_used": _NUMBER,
                "is_success": FileColumn(ColumnKind.TRUTH),
            },
        ),
        INTERNAL_TRANSFERS.name: FileTable(
            INTERNAL_TRANSFERS.name,
            {
                **_EXPORTED_BLOCK,
                "trace_index": _NUMBER,
                "from_address": _BYTES,
                "to_address": _BYTES,
                "amount_raw": _AMOUNT,
                "kind": FileColumn(ColumnKind.TEXT),
            },
        ),
    },
    _CHECKS,
    _are_hashes("block_hash"),
    coverage=FileTable(
        "coverage",
        {
            "subject_kind": FileColumn(ColumnKind.TEXT),
            "address": FileColumn(ColumnKind.TEXT),
            "from_block": _NUMBER,
            "to_block": _NUMBER,
        },
    ),
)

FORMS = MappingProxyType(
    {
        "aws": _transfers(_AWS),
        "cryo-logs": _transfers(_CRYO_LOGS, _blocks("block_number", "block_hash")),
        "cryo-transfers": _transfers(_CRYO_TRANSFERS, _blocks("block_number", "block_hash")),
        "ethereum-etl": _transfers(_ETL_LOGS, _blocks("number", "hash")),
        "columns": _transfers(_OWN),
        EXPORTED: _EXPORTED,
    }
)
"""The forms by name; `control.networks.evm` has the fields that a definition needs for each."""
