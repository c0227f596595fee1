"""Files of public forms: their names, columns and types as documented, and their content as the node has it."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.chain.conftest import GENESIS_TIME
from tests.chain.node import AnvilNode
from tests.chain.world import World, call_data
from tests.datasets.chain_files import read_chain, write_aws, write_cryo, write_ethereum_etl, write_own
from tests.datasets.damage import read_rows

# It tests a tool of the tests.
pytestmark = pytest.mark.release

# (block, log index, token, sender, receiver, amount)
Transfer = tuple[int, int, str, str, str, int]

_LARGE = 2**200 + 1
_DAYS = 2


@dataclass(frozen=True)
class Made:
    """A chain of 10 blocks and two days; `transfers` are its ERC-20 transfers, from the node."""

    node: AnvilNode
    nft: str
    transfers: list[Transfer]


@pytest.fixture(scope="module")
def made() -> Iterator[Made]:
    with AnvilNode(genesis_time=GENESIS_TIME) as node:
        world = World(node, wallet_count=3)
        gold = world.deploy_token("GOLD", 18, supply=2**255)
        world.distribute(gold, _LARGE)
        nft = world.deploy("Nft721", "Art", "ART")
        multi = world.deploy("Multi1155")
        world.mine()
        world.mine()
        world.mine()
        world.submit(world.deployer, nft, call_data("Nft721", "mint", world.wallets[0], 42))
        world.submit(world.deployer, multi, call_data("Multi1155", "mint", world.wallets[0], 1, 10))
        world.transfer(gold, world.wallets[0], world.wallets[1], 7)
        world.mine(GENESIS_TIME + _DAYS * 86_400)
        world.transfer(gold, world.wallets[1], world.wallets[2], _LARGE)
        world.mine()
        transfers = [
            (
                int(log["blockNumber"], 16),
                int(log["logIndex"], 16),
                log["address"],
                "0x" + log["topics"][1][26:],
                "0x" + log["topics"][2][26:],
                int(log["data"], 16),
            )
            for log in world.transfer_logs(0, node.head())
        ]
        assert node.head() == 9
        assert len(transfers) == 6
        yield Made(node, nft, transfers)


def parquet_schema(path: Path) -> dict[str, str]:
    return {field.name: str(field.type) for field in pq.read_schema(path)}


def physical_types(path: Path) -> dict[str, str]:
    schema = pq.ParquetFile(path).schema
    return {schema.column(number).path: schema.column(number).physical_type for number in range(len(schema.names))}


def csv_rows(paths: list[Path]) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = []
    for path in paths:
        with path.open(encoding="utf-8", newline="") as lines:
            rows += csv.DictReader(lines)
    return rows


def all_rows(paths: list[Path]) -> list[dict[str, Any]]:
    return [row for path in paths for row in read_rows(path)]


def names(paths: list[Path], folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in paths]


def short(topic: str | bytes) -> str:
    return "0x" + (topic.hex() if isinstance(topic, bytes) else topic)[-40:]


def test_all_logs_are_read(made: Made) -> None:
    chain = read_chain(made.node)
    assert [len(block["transactions"]) for block in chain.blocks] == [0, 1, 3, 1, 1, 0, 0, 0, 3, 1]
    assert [len(log.topics) for log in chain.logs if log.block == 8] == [4, 4, 3]
    assert len(chain.logs) == len(made.transfers) + 2
    part = read_chain(made.node, 2, 8)
    assert ([part.blocks[0]["number"], part.blocks[-1]["number"]], len(part.logs)) == (["0x2", "0x8"], 6)


# AWS Open Data


def test_aws_files_have_the_documented_columns(made: Made, tmp_path: Path) -> None:
    paths = write_aws(made.node, tmp_path)
    assert [path.parent.relative_to(tmp_path).as_posix() for path in paths] == [
        f"{table}/date=2023-11-{day}" for table in ("logs", "blocks", "token_transfers") for day in (14, 16)
    ]
    assert all(path.match("part-00000-*.snappy.parquet") for path in paths)
    assert pq.read_metadata(paths[0]).row_group(0).column(0).compression == "SNAPPY"
    assert parquet_schema(paths[0]) == {
        "log_index": "int64",
        "transaction_hash": "string",
        "transaction_index": "int64",
        "address": "string",
        "data": "string",
        "topics": "list<element: string>",
        "block_timestamp": "timestamp[ns]",
        "block_number": "int64",
        "block_hash": "string",
        "last_modified": "timestamp[ns]",
    }
    assert parquet_schema(paths[2]) == {
        "timestamp": "timestamp[ns]",
        "number": "int64",
        "hash": "string",
        "parent_hash": "string",
        "nonce": "string",
        "sha3_uncles": "string",
        "logs_bloom": "string",
        "transactions_root": "string",
        "state_root": "string",
        "receipts_root": "string",
        "miner": "string",
        "difficulty": "double",
        "total_difficulty": "double",
        "size": "int64",
        "extra_data": "string",
        "gas_limit": "int64",
        "gas_used": "int64",
        "transaction_count": "int64",
        "base_fee_per_gas": "int64",
        "last_modified": "timestamp[ns]",
    }
    assert parquet_schema(paths[4]) == {
        "token_address": "string",
        "from_address": "string",
        "to_address": "string",
        "value": "double",
        "transaction_hash": "string",
        "log_index": "int64",
        "block_timestamp": "timestamp[ns]",
        "block_number": "int64",
        "block_hash": "string",
        "last_modified": "timestamp[ns]",
    }
    assert physical_types(paths[0])["block_timestamp"] == "INT96"


def test_aws_options_change_timestamps_and_add_the_date(made: Made, tmp_path: Path) -> None:
    (path,) = write_aws(made.node, tmp_path, first=1, last=3, tables=["logs"], date_column=True, int96=False)
    schema = parquet_schema(path)
    assert (schema["block_timestamp"], schema["date"]) == ("timestamp[us]", "string")
    assert {row["date"] for row in read_rows(path)} == {"2023-11-14"}


def test_aws_logs_contain_the_transfers_in_any_order(made: Made, tmp_path: Path) -> None:
    logs = all_rows(write_aws(made.node, tmp_path, tables=["logs"]))
    found = [
        (row["block_number"], row["log_index"], row["address"], *map(short, row["topics"][1:]), int(row["data"], 16))
        for row in logs
        if len(row["topics"]) == 3
    ]
    assert found != made.transfers
    assert sorted(found) == made.transfers
    block = made.node.rpc("eth_getBlockByNumber", ["0x8", False])
    late = next(row for row in logs if row["block_number"] == 8)
    assert late["block_hash"] == block["hash"]
    assert late["block_timestamp"].timestamp() == int(block["timestamp"], 16)


def test_aws_transfers_round_amounts_and_include_token_ids(made: Made, tmp_path: Path) -> None:
    rows = all_rows(write_aws(made.node, tmp_path, tables=["token_transfers"]))
    assert len(rows) == len(made.transfers) + 1
    assert {len(row["from_address"]) for row in rows} == {66}
    assert [row["value"] for row in rows if row["token_address"] == made.nft] == [42.0]
    rounded = {int(row["value"]) for row in rows} - {amount for *_, amount in made.transfers}
    assert rounded == {42, _LARGE - 1}


# cryo


@pytest.mark.parametrize(("binary", "blob"), [(True, "binary"), (False, "string")])
def test_cryo_files_have_the_columns_of_its_source(made: Made, tmp_path: Path, binary: bool, blob: str) -> None:
    paths = write_cryo(made.node, tmp_path, binary=binary, blocks_per_file=4)
    assert names(paths, tmp_path) == [
        f"network_31337__{dataset}__{blocks}.parquet"
        for dataset in ("logs", "erc20_transfers", "blocks")
        for blocks in ("00000000_to_00000003", "00000004_to_00000007", "00000008_to_00000009")
    ]
    assert pq.read_metadata(paths[0]).row_group(0).column(0).compression == "LZ4"
    assert parquet_schema(paths[0]) == {
        "block_number": "uint32",
        "transaction_index": "uint32",
        "log_index": "uint32",
        "transaction_hash": blob,
        "address": blob,
        "topic0": blob,
        "topic1": blob,
        "topic2": blob,
        "topic3": blob,
        "data": blob,
        "n_data_bytes": "uint32",
        "chain_id": "uint64",
    }
    assert parquet_schema(paths[3]) == {
        "block_number": "uint32",
        "transaction_index": "uint32",
        "log_index": "uint32",
        "transaction_hash": blob,
        "erc20": blob,
        "from_address": blob,
        "to_address": blob,
        "value_binary": blob,
        "value_string": "string",
        "value_f64": "double",
        "chain_id": "uint64",
    }
    assert parquet_schema(paths[6]) == {
        "block_hash": blob,
        "author": blob,
        "block_number": "uint32",
        "gas_used": "uint64",
        "extra_data": blob,
        "timestamp": "uint32",
        "base_fee_per_gas": "uint64",
        "chain_id": "uint64",
    }
    assert list(parquet_schema(paths[0])) == [
        *("block_number", "transaction_index", "log_index", "transaction_hash", "address"),
        *("topic0", "topic1", "topic2", "topic3", "data", "n_data_bytes", "chain_id"),
    ]


@pytest.mark.parametrize("binary", [True, False])
def test_cryo_transfers_equal_those_of_the_node(made: Made, tmp_path: Path, binary: bool) -> None:
    rows = all_rows(write_cryo(made.node, tmp_path, binary=binary, blocks_per_file=3, datasets=["erc20_transfers"]))

    def text(value: Any) -> str:
        return "0x" + value.hex() if binary else str(value)

    found = [
        (row["block_number"], row["log_index"], *(text(row[name]) for name in ("erc20", "from_address", "to_address")),
         int(text(row["value_binary"]), 16))
        for row in rows
    ]  # fmt: skip
    assert found == made.transfers
    assert [int(row["value_string"]) for row in rows] == [amount for *_, amount in made.transfers]
    assert {len(text(row["value_binary"])) for row in rows} == {66}


@pytest.mark.parametrize("amounts", ["binary", "string", "f64"])
def test_cryo_writes_the_chosen_form_of_amounts(made: Made, tmp_path: Path, amounts: Any) -> None:
    paths = write_cryo(made.node, tmp_path, amounts=amounts, datasets=["erc20_transfers"], network="ethereum")
    assert [path.name for path in paths] == ["ethereum__erc20_transfers__00000000_to_00000009.parquet"]
    assert [name for name in parquet_schema(paths[0]) if "value" in name] == [f"value_{amounts}"]


def test_cryo_logs_contain_all_events_and_the_block_hash_by_option(made: Made, tmp_path: Path) -> None:
    logs = all_rows(write_cryo(made.node, tmp_path, datasets=["logs"], block_hash=True))
    nft = next(row for row in logs if row["address"].hex() == made.nft[2:])
    assert (int.from_bytes(nft["topic3"]), nft["data"], nft["n_data_bytes"]) == (42, b"", 0)
    assert [row["topic3"] is None for row in logs if row["block_number"] == 8] == [False, False, True]
    assert "0x" + nft["block_hash"].hex() == made.node.rpc("eth_getBlockByNumber", ["0x8", False])["hash"]


# ethereum-etl


def test_ethereum_etl_csv_has_the_documented_columns(made: Made, tmp_path: Path) -> None:
    paths = write_ethereum_etl(made.node, tmp_path, blocks_per_file=4)
    assert names(paths, tmp_path) == [
        f"{table}/start_block={first}/end_block={last}/{table}_{first}_{last}.csv"
        for table in ("blocks", "token_transfers", "logs")
        for first, last in (("00000000", "00000003"), ("00000004", "00000007"), ("00000008", "00000009"))
    ]
    headers = [paths[number].read_bytes().split(b"\r\n")[0].decode() for number in (0, 3, 6)]
    assert headers == [
        "number,hash,parent_hash,nonce,sha3_uncles,logs_bloom,transactions_root,state_root,receipts_root,miner,difficulty,"
        "total_difficulty,size,extra_data,gas_limit,gas_used,timestamp,transaction_count,base_fee_per_gas,"
        "withdrawals_root,withdrawals,blob_gas_used,excess_blob_gas",
        "token_address,from_address,to_address,value,transaction_hash,log_index,block_number",
        "log_index,transaction_hash,transaction_index,block_hash,block_number,address,data,topics",
    ]
    # A range without logs.
    assert [paths[number].stat().st_size for number in (4, 7)] == [0, 0]
    first = csv_rows(paths[:1])[1]
    assert (first["number"], first["timestamp"]) == ("1", str(made.node.block_time(1)))


def test_ethereum_etl_logs_contain_the_transfers(made: Made, tmp_path: Path) -> None:
    rows = csv_rows(write_ethereum_etl(made.node, tmp_path, blocks_per_file=4, tables=["logs"]))
    found = [
        (int(row["block_number"]), int(row["log_index"]), row["address"], short(topics[1]), short(topics[2]),
         int(row["data"], 16))
        for row in rows
        if len(topics := row["topics"].split(",")) == 3
    ]  # fmt: skip
    assert found == made.transfers
    assert len(rows) == len(made.transfers) + 2


def test_ethereum_etl_token_transfers_include_token_ids(made: Made, tmp_path: Path) -> None:
    rows = csv_rows(write_ethereum_etl(made.node, tmp_path, tables=["token_transfers"]))
    found = [
        (int(row["block_number"]), int(row["log_index"]), row["token_address"], row["from_address"], row["to_address"],
         int(row["value"]))
        for row in rows
    ]  # fmt: skip
    assert [row for row in found if row[2] != made.nft] == made.transfers
    assert [row[5] for row in found if row[2] == made.nft] == [42]


def test_ethereum_etl_parquet_has_the_rows_of_its_csv(made: Made, tmp_path: Path) -> None:
    for table in ("blocks", "logs", "token_transfers"):
        (text,) = write_ethereum_etl(made.node, tmp_path, tables=[table])
        (typed,) = write_ethereum_etl(made.node, tmp_path, tables=[table], file_format="parquet")
        assert typed == text.with_suffix(".parquet")
        rows = [{name: "" if value is None else str(value) for name, value in row.items()} for row in read_rows(typed)]
        assert rows == csv_rows([text])
        integers = {name for name, type_ in parquet_schema(typed).items() if type_ == "int64"}
        assert (
            integers
            == {
                "blocks": {
                    *("number", "size", "gas_limit", "gas_used", "timestamp", "transaction_count", "base_fee_per_gas"),
                    *("blob_gas_used", "excess_blob_gas"),
                },
                "logs": {"log_index", "transaction_index", "block_number"},
                "token_transfers": {"log_index", "block_number"},
            }[table]
        )


# Names of one's own


def test_own_files_have_the_transfers_in_own_columns(made: Made, tmp_path: Path) -> None:
    paths = write_own(made.node, tmp_path, blocks_per_file=4, first=1)
    assert names(paths, tmp_path) == ["transfers_1_4.parquet", "transfers_5_8.parquet", "transfers_9_9.parquet"]
    assert parquet_schema(paths[0]) == {
        "blk": "int64",
        "hash": "string",
        "tx": "string",
        "ix": "int64",
        "pos": "int64",
        "token": "string",
        "sender": "string",
        "receiver": "string",
        "amount": "string",
        "at": "timestamp[us, tz=UTC]",
    }
    rows = all_rows(paths)
    found = [(row["blk"], row["pos"], row["token"], row["sender"], row["receiver"], int(row["amount"])) for row in rows]
    assert found == made.transfers
    assert [row["at"].timestamp() for row in rows] == [made.node.block_time(row["blk"]) for row in rows]
