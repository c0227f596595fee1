"""Files of a test chain in the forms of public data sets, written without the product's code.

Logs and blocks come from the node over JSON-RPC; pyarrow and csv write the files. Each function names the source of its
schema. All logs of the chain are written, not only token transfers.
"""

import csv
import json
import random
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from tests.chain.node import AnvilNode
from tests.chain.world import TRANSFER_TOPIC

Row = dict[str, Any]
AwsTable = Literal["logs", "blocks", "token_transfers"]
CryoDataset = Literal["logs", "blocks", "erc20_transfers"]
EtlTable = Literal["logs", "blocks", "token_transfers"]
Amounts = Literal["all", "binary", "string", "f64"]

_BLOCKS_A_REQUEST = 1_000
_TIME = pa.timestamp("us")
_WORD = 64

AWS_SCHEMAS = {
    "logs": pa.schema(
        {
            "log_index": pa.int64(),
            "transaction_hash": pa.string(),
            "transaction_index": pa.int64(),
            "address": pa.string(),
            "data": pa.string(),
            "topics": pa.list_(pa.string()),
            "block_timestamp": _TIME,
            "block_number": pa.int64(),
            "block_hash": pa.string(),
            "last_modified": _TIME,
        }
    ),
    "blocks": pa.schema(
        {
            "timestamp": _TIME,
            "number": pa.int64(),
            "hash": pa.string(),
            "parent_hash": pa.string(),
            "nonce": pa.string(),
            "sha3_uncles": pa.string(),
            "logs_bloom": pa.string(),
            "transactions_root": pa.string(),
            "state_root": pa.string(),
            "receipts_root": pa.string(),
            "miner": pa.string(),
            "difficulty": pa.float64(),
            "total_difficulty": pa.float64(),
            "size": pa.int64(),
            "extra_data": pa.string(),
            "gas_limit": pa.int64(),
            "gas_used": pa.int64(),
            "transaction_count": pa.int64(),
            "base_fee_per_gas": pa.int64(),
            "last_modified": _TIME,
        }
    ),
    "token_transfers": pa.schema(
        {
            "token_address": pa.string(),
            "from_address": pa.string(),
            "to_address": pa.string(),
            "value": pa.float64(),
            "transaction_hash": pa.string(),
            "log_index": pa.int64(),
            "block_timestamp": _TIME,
            "block_number": pa.int64(),
            "block_hash": pa.string(),
            "last_modified": _TIME,
        }
    ),
}

_ETL_TYPES = {
    "logs": {
        "log_index": pa.int64(),
        "transaction_hash": pa.string(),
        "transaction_index": pa.int64(),
        "block_hash": pa.string(),
        "block_number": pa.int64(),
        "address": pa.string(),
        "data": pa.string(),
        "topics": pa.string(),
    },
    "blocks": {
        "number": pa.int64(),
        "hash": pa.string(),
        "parent_hash": pa.string(),
        "nonce": pa.string(),
        "sha3_uncles": pa.string(),
        "logs_bloom": pa.string(),
        "transactions_root": pa.string(),
        "state_root": pa.string(),
        "receipts_root": pa.string(),
        "miner": pa.string(),
        "difficulty": pa.string(),
        "total_difficulty": pa.string(),
        "size": pa.int64(),
        "extra_data": pa.string(),
        "gas_limit": pa.int64(),
        "gas_used": pa.int64(),
        "timestamp": pa.int64(),
        "transaction_count": pa.int64(),
        "base_fee_per_gas": pa.int64(),
        "withdrawals_root": pa.string(),
        "withdrawals": pa.string(),
        "blob_gas_used": pa.int64(),
        "excess_blob_gas": pa.int64(),
    },
    "token_transfers": {
        "token_address": pa.string(),
        "from_address": pa.string(),
        "to_address": pa.string(),
        "value": pa.string(),
        "transaction_hash": pa.string(),
        "log_index": pa.int64(),
        "block_number": pa.int64(),
    },
}
ETL_SCHEMAS = {table: pa.schema(types) for table, types in _ETL_TYPES.items()}

OWN_SCHEMA = pa.schema(
    {
        "blk": pa.int64(),
        "hash": pa.string(),
        "tx": pa.string(),
        "ix": pa.int64(),
        "pos": pa.int64(),
        "token": pa.string(),
        "sender": pa.string(),
        "receiver": pa.string(),
        "amount": pa.string(),
        "at": pa.timestamp("us", tz="UTC"),
    }
)

_CRYO_NETWORKS = {
    1: "ethereum",
    10: "optimism",
    56: "binance",
    137: "polygon",
    42161: "arbitrum",
    43114: "avalanche",
    11155111: "sepolia",
}


@dataclass(frozen=True)
class Log:
    """One log; hexadecimal text in lower case."""

    block: int
    block_hash: str
    time: int
    transaction: str
    transaction_index: int
    index: int
    address: str
    topics: tuple[str, ...]
    data: str

    @property
    def words(self) -> list[str]:
        """The 32-byte words of `data`, as 0x text; the last one may be shorter."""
        return ["0x" + self.data[start : start + _WORD] for start in range(2, len(self.data), _WORD)]

    @property
    def is_erc20_transfer(self) -> bool:
        """True for a Transfer event with three topics and one word of data."""
        return self.topics[:1] == (TRANSFER_TOPIC,) and len(self.topics) == 3 and len(self.data) == 2 + _WORD


@dataclass(frozen=True)
class ChainRange:
    """Logs and blocks `first` to `last` of a chain, in the chain's order; `blocks` as the node returns them."""

    chain_id: int
    first: int
    last: int
    blocks: list[Row]
    logs: list[Log]

    def chunks(self, size: int) -> Iterator["ChainRange"]:
        """Yield the parts of at most `size` blocks."""
        for first in range(self.first, self.last + 1, size):
            last = min(first + size - 1, self.last)
            yield self._part(range(first, last + 1))

    def days(self) -> Iterator[tuple[str, "ChainRange"]]:
        """Yield the parts of each UTC day, with the day as YYYY-MM-DD."""
        numbers: dict[str, list[int]] = {}
        for block in self.blocks:
            day = datetime.fromtimestamp(int(block["timestamp"], 16), UTC).date().isoformat()
            numbers.setdefault(day, []).append(int(block["number"], 16))
        for day, found in sorted(numbers.items()):
            yield day, self._part(range(found[0], found[-1] + 1))

    def _part(self, numbers: range) -> "ChainRange":
        blocks = [block for block in self.blocks if int(block["number"], 16) in numbers]
        logs = [log for log in self.logs if log.block in numbers]
        return ChainRange(self.chain_id, numbers[0], numbers[-1], blocks, logs)


def read_chain(node: AnvilNode, first: int = 0, last: int | None = None) -> ChainRange:
    """Read all logs and blocks from `first` to `last` (default: the newest) from a node."""
    last = node.head() if last is None else last
    calls = [("eth_getBlockByNumber", [hex(number), False]) for number in range(first, last + 1)]
    blocks = node.batch(calls)
    times = {block["number"]: int(block["timestamp"], 16) for block in blocks}
    logs = []
    for start in range(first, last + 1, _BLOCKS_A_REQUEST):
        criteria = {"fromBlock": hex(start), "toBlock": hex(min(start + _BLOCKS_A_REQUEST - 1, last))}
        logs += node.rpc("eth_getLogs", [criteria])
    decoded = [
        Log(
            block=int(log["blockNumber"], 16),
            block_hash=log["blockHash"],
            time=times[log["blockNumber"]],
            transaction=log["transactionHash"],
            transaction_index=int(log["transactionIndex"], 16),
            index=int(log["logIndex"], 16),
            address=log["address"].lower(),
            topics=tuple(log["topics"]),
            data=log["data"],
        )
        for log in logs
    ]
    ordered = sorted(decoded, key=lambda log: (log.block, log.index))
    return ChainRange(int(node.rpc("eth_chainId"), 16), first, last, blocks, ordered)


# AWS Open Data


def write_aws(
    node: AnvilNode,
    folder: Path,
    *,
    first: int = 0,
    last: int | None = None,
    tables: Collection[AwsTable] = ("logs", "blocks", "token_transfers"),
    date_column: bool = False,
    int96: bool = True,
) -> list[Path]:
    """Write `<table>/date=YYYY-MM-DD/part-*.snappy.parquet`, one file a UTC day, as AWS Open Data has them.

    Schema: github.com/aws-solutions-library-samples/guidance-for-digital-assets-on-aws. Columns and types are in
    analytics/consumer/schema/eth.md, `last_modified` and the rows of `token_transfers` in
    analytics/producer/copilot/ethereum-worker/worker.py. Spark writes one unsorted file a day: see
    analytics/producer/scripts/glue/daily_compact.py.

    `token_transfers` has amounts as doubles, participants as 32-byte topics, and ERC-721 transfers with a token id as
    amount.

    Args:
        node: the chain.
        folder: that of the data set; it need not exist.
        first: first block.
        last: last block; default: the newest.
        tables: to write.
        date_column: also write `date` into the files, as the producer does; the documentation has it in the path only.
        int96: write timestamps in Spark's default type, otherwise as microseconds.

    Returns:
        The files, by table and date.
    """
    days = list(read_chain(node, first, last).days())
    paths = []
    for table in tables:
        schema = AWS_SCHEMAS[table]
        if date_column:
            schema = pa.schema([*schema, pa.field("date", pa.string())])
        for day, part in days:
            rows = [{**row, "date": day} for row in _AWS_ROWS[table](part)]
            random.Random(day).shuffle(rows)
            name = f"part-00000-{uuid.uuid5(uuid.NAMESPACE_OID, table + day)}-c000.snappy.parquet"
            path = folder / table / f"date={day}" / name
            paths.append(_write_parquet(path, rows, schema, "snappy", int96=int96))
    return paths


def _aws_logs(part: ChainRange) -> list[Row]:
    return [
        {
            "log_index": log.index,
            "transaction_hash": log.transaction,
            "transaction_index": log.transaction_index,
            "address": log.address,
            "data": log.data,
            "topics": list(log.topics),
            **_aws_position(log),
        }
        for log in part.logs
    ]


def _aws_position(log: Log) -> Row:
    return {
        "block_timestamp": _naive(log.time),
        "block_number": log.block,
        "block_hash": log.block_hash,
        "last_modified": _naive(log.time + 86_400),
    }


def _aws_token_transfers(part: ChainRange) -> list[Row]:
    rows = []
    for log in part.logs:
        parts = [*log.topics, *log.words]
        if log.topics[:1] == (TRANSFER_TOPIC,) and len(parts) >= 4:
            amount = parts[3] if log.data == "0x" else log.data
            rows.append(
                {
                    "token_address": log.address,
                    "from_address": parts[1],
                    "to_address": parts[2],
                    "value": float(int(amount, 16)),
                    "transaction_hash": log.transaction,
                    "log_index": log.index,
                    **_aws_position(log),
                }
            )
    return rows


def _aws_blocks(part: ChainRange) -> list[Row]:
    rows = []
    for block in part.blocks:
        row = _block_fields(block)
        for name in ("difficulty", "total_difficulty"):
            row[name] = float(row[name])
        row["last_modified"] = _naive(row["timestamp"] + 86_400)
        row["timestamp"] = _naive(row["timestamp"])
        rows.append(row)
    return rows


_AWS_ROWS: Mapping[AwsTable, Callable[[ChainRange], list[Row]]] = {
    "logs": _aws_logs,
    "blocks": _aws_blocks,
    "token_transfers": _aws_token_transfers,
}


# cryo


def write_cryo(
    node: AnvilNode,
    folder: Path,
    *,
    binary: bool = True,
    amounts: Amounts = "all",
    blocks_per_file: int = 1_000,
    first: int = 0,
    last: int | None = None,
    datasets: Collection[CryoDataset] = ("logs", "erc20_transfers", "blocks"),
    network: str | None = None,
    block_hash: bool = False,
) -> list[Path]:
    """Write `<network>__<dataset>__<first>_to_<last>.parquet` as cryo does, with block numbers of at least 8 digits.

    Schema: github.com/paradigmxyz/cryo. Columns are in crates/freeze/src/datasets/{logs,erc20_transfers,blocks}.rs,
    types and order in crates/to_df/src/lib.rs and crates/freeze/src/types/dataframes/creation.rs, names of files in
    crates/freeze/src/types/{files.rs,chunks/number_chunk.rs} and crates/cli/src/parse/file_output.rs. Older versions
    have no column `n_data_bytes`.

    Args:
        node: the chain.
        folder: that of the files; it need not exist.
        binary: bytes, cryo's default; False is `--hex`: text with 0x, also in `value_binary`.
        amounts: `--u256-types`: the columns that hold `value`; "all" is cryo's default.
        blocks_per_file: `--chunk-size`.
        first: first block.
        last: last block; default: the newest.
        datasets: to write.
        network: `--network-name`; default: cryo's name of the chain.
        block_hash: `--include-columns block_hash`, which newer versions have for logs.

    Returns:
        The files, by dataset and block.
    """
    chain = read_chain(node, first, last)
    prefix = network or _CRYO_NETWORKS.get(chain.chain_id, f"network_{chain.chain_id}")
    suffixes = ("binary", "string", "f64") if amounts == "all" else (amounts,)
    paths = []
    for dataset in datasets:
        schema = cryo_schema(dataset, binary=binary, amounts=amounts, block_hash=block_hash)
        for chunk in chain.chunks(blocks_per_file):
            rows = [_cryo_row(row, schema, suffixes) for row in _CRYO_ROWS[dataset](chunk)]
            path = folder / f"{prefix}__{dataset}__{chunk.first:08}_to_{chunk.last:08}.parquet"
            paths.append(_write_parquet(path, rows, schema, "lz4"))
    return paths


def cryo_schema(
    dataset: CryoDataset, *, binary: bool = True, amounts: Amounts = "all", block_hash: bool = False
) -> pa.Schema:
    """Return the schema of a dataset that cryo writes with these options; see `write_cryo`."""
    blob = pa.binary() if binary else pa.string()
    position = {"block_number": pa.uint32()}
    if dataset == "logs" and block_hash:
        position["block_hash"] = blob
    position |= {"transaction_index": pa.uint32(), "log_index": pa.uint32(), "transaction_hash": blob}
    values = {"binary": blob, "string": pa.string(), "f64": pa.float64()}
    chosen = {f"value_{name}": type_ for name, type_ in values.items() if amounts in ("all", name)}
    columns: dict[CryoDataset, dict[str, pa.DataType]] = {
        "logs": {
            **position,
            "address": blob,
            **{f"topic{number}": blob for number in range(4)},
            "data": blob,
            "n_data_bytes": pa.uint32(),
        },
        "erc20_transfers": {**position, "erc20": blob, "from_address": blob, "to_address": blob, **chosen},
        "blocks": {
            "block_hash": blob,
            "author": blob,
            "block_number": pa.uint32(),
            "gas_used": pa.uint64(),
            "extra_data": blob,
            "timestamp": pa.uint32(),
            "base_fee_per_gas": pa.uint64(),
        },
    }
    return pa.schema({**columns[dataset], "chain_id": pa.uint64()})


def _cryo_row(row: Row, schema: pa.Schema, amounts: Sequence[str]) -> Row:
    """Add the columns of the amount, and turn 0x text into bytes where the schema has bytes."""
    if "value" in row:
        value = row["value"]
        forms = {"binary": f"0x{value:064x}", "string": str(value), "f64": float(value)}
        row = {**row, **{f"value_{name}": forms[name] for name in amounts}}
    blobs = [field.name for field in schema if pa.types.is_binary(field.type) and row[field.name] is not None]
    return {**row, **{name: bytes.fromhex(row[name][2:]) for name in blobs}}


def _cryo_position(part: ChainRange, log: Log) -> Row:
    return {
        "block_number": log.block,
        "block_hash": log.block_hash,
        "transaction_index": log.transaction_index,
        "log_index": log.index,
        "transaction_hash": log.transaction,
        "chain_id": part.chain_id,
    }


def _cryo_logs(part: ChainRange) -> list[Row]:
    return [
        {
            **_cryo_position(part, log),
            "address": log.address,
            **{f"topic{number}": _item(log.topics, number) for number in range(4)},
            "data": log.data,
            "n_data_bytes": len(log.data) // 2 - 1,
        }
        for log in part.logs
    ]


def _cryo_transfers(part: ChainRange) -> list[Row]:
    return [
        {
            **_cryo_position(part, log),
            "erc20": log.address,
            "from_address": _address(log.topics[1]),
            "to_address": _address(log.topics[2]),
            "value": int(log.data, 16),
        }
        for log in part.logs
        if log.is_erc20_transfer
    ]


def _cryo_blocks(part: ChainRange) -> list[Row]:
    return [
        {
            "block_hash": block["hash"],
            "author": block["miner"],
            "block_number": int(block["number"], 16),
            "gas_used": int(block["gasUsed"], 16),
            "extra_data": block["extraData"],
            "timestamp": int(block["timestamp"], 16),
            "base_fee_per_gas": _number(block, "baseFeePerGas"),
            "chain_id": part.chain_id,
        }
        for block in part.blocks
    ]


_CRYO_ROWS: Mapping[CryoDataset, Callable[[ChainRange], list[Row]]] = {
    "logs": _cryo_logs,
    "erc20_transfers": _cryo_transfers,
    "blocks": _cryo_blocks,
}


# ethereum-etl


def write_ethereum_etl(
    node: AnvilNode,
    folder: Path,
    *,
    file_format: Literal["csv", "parquet"] = "csv",
    blocks_per_file: int = 10_000,
    first: int = 0,
    last: int | None = None,
    tables: Collection[EtlTable] = ("blocks", "token_transfers", "logs"),
) -> list[Path]:
    """Write `<table>/start_block=<first>/end_block=<last>/<table>_<first>_<last>.csv` as `export_all` does.

    Schema: github.com/blockchain-etl/ethereum-etl. Types are in docs/schema.md, columns and their order in
    ethereumetl/jobs/exporters/, paths in ethereumetl/cli/export_all.py and ethereumetl/jobs/export_all_common.py. The
    CSV is that of blockchainetl/exporters.py: lines end with CR LF, topics are joined by commas, times are Unix
    seconds. A file without rows is empty, without a header. `token_transfers` also has ERC-721 transfers, with
    the token id as value: see ethereumetl/service/token_transfer_extractor.py.

    It writes no Parquet itself. The Parquet files here are its CSV files converted by the types of docs/schema.md, with
    `numeric` as decimal text.

    Args:
        node: the chain.
        folder: that of the data set; it need not exist.
        file_format: of the files.
        blocks_per_file: `--partition-batch-size`.
        first: first block.
        last: last block; default: the newest.
        tables: to write.

    Returns:
        The files, by table and block.
    """
    chunks = list(read_chain(node, first, last).chunks(blocks_per_file))
    paths = []
    for table in tables:
        for chunk in chunks:
            start, end = f"{chunk.first:08}", f"{chunk.last:08}"
            place = folder / table / f"start_block={start}" / f"end_block={end}"
            path = place / f"{table}_{start}_{end}.{file_format}"
            rows = _ETL_ROWS[table](chunk)
            if file_format == "csv":
                paths.append(_write_csv(path, rows, ETL_SCHEMAS[table].names))
            else:
                paths.append(_write_parquet(path, rows, ETL_SCHEMAS[table], "snappy"))
    return paths


def _etl_logs(part: ChainRange) -> list[Row]:
    return [
        {
            "log_index": log.index,
            "transaction_hash": log.transaction,
            "transaction_index": log.transaction_index,
            "block_hash": log.block_hash,
            "block_number": log.block,
            "address": log.address,
            "data": log.data,
            "topics": ",".join(log.topics),
        }
        for log in part.logs
    ]


def _etl_blocks(part: ChainRange) -> list[Row]:
    rows = []
    for block in part.blocks:
        row = _block_fields(block)
        row["difficulty"], row["total_difficulty"] = str(row["difficulty"]), str(row["total_difficulty"])
        row["withdrawals_root"] = block.get("withdrawalsRoot")
        withdrawals = [
            {
                "index": int(item["index"], 16),
                "validator_index": int(item["validatorIndex"], 16),
                "address": item["address"],
                "amount": int(item["amount"], 16),
            }
            for item in block.get("withdrawals", [])
        ]
        row["withdrawals"] = ",".join(json.dumps(item, separators=(",", ":")) for item in withdrawals)
        row["blob_gas_used"] = _number(block, "blobGasUsed")
        row["excess_blob_gas"] = _number(block, "excessBlobGas")
        rows.append(row)
    return rows


def _etl_token_transfers(part: ChainRange) -> list[Row]:
    rows = []
    for log in part.logs:
        parts = [*log.topics, *log.words]
        if log.topics[:1] == (TRANSFER_TOPIC,) and len(parts) == 4:
            rows.append(
                {
                    "token_address": log.address,
                    "from_address": _address(parts[1]),
                    "to_address": _address(parts[2]),
                    "value": str(int(parts[3], 16)),
                    "transaction_hash": log.transaction,
                    "log_index": log.index,
                    "block_number": log.block,
                }
            )
    return rows


_ETL_ROWS: Mapping[EtlTable, Callable[[ChainRange], list[Row]]] = {
    "logs": _etl_logs,
    "blocks": _etl_blocks,
    "token_transfers": _etl_token_transfers,
}


# Names of one's own


def write_own(
    node: AnvilNode, folder: Path, *, blocks_per_file: int = 10_000, first: int = 0, last: int | None = None
) -> list[Path]:
    """Write `transfers_<first>_<last>.parquet`: ERC-20 transfers in columns with names of one's own.

    Amounts are decimal text, times have a time zone, and block numbers in file names have no leading zeros.

    Returns:
        The files, by block.
    """
    paths = []
    for chunk in read_chain(node, first, last).chunks(blocks_per_file):
        rows = [
            {
                "blk": log.block,
                "hash": log.block_hash,
                "tx": log.transaction,
                "ix": log.transaction_index,
                "pos": log.index,
                "token": log.address,
                "sender": _address(log.topics[1]),
                "receiver": _address(log.topics[2]),
                "amount": str(int(log.data, 16)),
                "at": datetime.fromtimestamp(log.time, UTC),
            }
            for log in chunk.logs
            if log.is_erc20_transfer
        ]
        path = folder / f"transfers_{chunk.first}_{chunk.last}.parquet"
        paths.append(_write_parquet(path, rows, OWN_SCHEMA, "zstd"))
    return paths


# All forms


def _block_fields(block: Row) -> Row:
    """Return the fields of a block that AWS Open Data and ethereum-etl share; numbers as integers."""
    return {
        "number": int(block["number"], 16),
        "hash": block["hash"],
        "parent_hash": block["parentHash"],
        "nonce": block["nonce"],
        "sha3_uncles": block["sha3Uncles"],
        "logs_bloom": block["logsBloom"],
        "transactions_root": block["transactionsRoot"],
        "state_root": block["stateRoot"],
        "receipts_root": block["receiptsRoot"],
        "miner": block["miner"],
        "difficulty": int(block["difficulty"], 16),
        "total_difficulty": _number(block, "totalDifficulty") or 0,
        "size": int(block["size"], 16),
        "extra_data": block["extraData"],
        "gas_limit": int(block["gasLimit"], 16),
        "gas_used": int(block["gasUsed"], 16),
        "timestamp": int(block["timestamp"], 16),
        "transaction_count": len(block["transactions"]),
        "base_fee_per_gas": _number(block, "baseFeePerGas"),
    }


def _number(block: Row, name: str) -> int | None:
    return int(block[name], 16) if block.get(name) is not None else None


def _item(items: Sequence[str], number: int) -> str | None:
    return items[number] if number < len(items) else None


def _address(topic: str) -> str:
    return "0x" + topic[-40:].lower()


def _naive(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


def _write_parquet(path: Path, rows: list[Row], schema: pa.Schema, compression: str, *, int96: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist([{name: row[name] for name in schema.names} for row in rows], schema=schema)
    pq.write_table(table, path, compression=compression, use_deprecated_int96_timestamps=int96)
    return path


def _write_csv(path: Path, rows: list[Row], columns: Sequence[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as sink:
        if rows:
            writer = csv.DictWriter(sink, columns)
            writer.writeheader()
            writer.writerows(rows)
    return path
