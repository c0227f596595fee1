"""Damage of Parquet files: each function changes one thing, in every form of values, and nothing else."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.chain.conftest import GENESIS_TIME
from tests.chain.node import AnvilNode
from tests.chain.world import World
from tests.datasets import damage
from tests.datasets.chain_files import write_aws, write_cryo, write_own

# It tests a tool of the tests.
pytestmark = pytest.mark.release

_AMOUNT = 2**130 + 1


@pytest.fixture(scope="module")
def node() -> Iterator[AnvilNode]:
    with AnvilNode(genesis_time=GENESIS_TIME) as running:
        world = World(running, wallet_count=3)
        world.distribute(world.deploy_token("GOLD", 18, supply=2**200), _AMOUNT)
        yield running


def aws(node: AnvilNode, folder: Path) -> Path:
    (path,) = write_aws(node, folder, first=2, tables=["logs"])
    return path


def cryo(node: AnvilNode, folder: Path) -> Path:
    (path,) = write_cryo(node, folder, first=2, datasets=["erc20_transfers"])
    return path


def own(node: AnvilNode, folder: Path) -> Path:
    (path,) = write_own(node, folder, first=2)
    return path


Form = Callable[[AnvilNode, Path], Path]
FORMS = [
    pytest.param(aws, "data", f"0x{_AMOUNT + 1:064x}", "log_index", "block_hash", id="0x text"),
    pytest.param(cryo, "value_binary", (_AMOUNT + 1).to_bytes(32), "log_index", "transaction_hash", id="bytes"),
    pytest.param(cryo, "value_string", str(_AMOUNT + 1), "log_index", "transaction_hash", id="decimal text"),
    pytest.param(own, "amount", str(_AMOUNT + 1), "pos", "hash", id="own names"),
]


@pytest.mark.parametrize(("form", "amount", "changed", "index", "hashes"), FORMS)
def test_damage_changes_only_the_row_or_column_it_names(
    node: AnvilNode, tmp_path: Path, form: Form, amount: str, changed: Any, index: str, hashes: str
) -> None:
    path = form(node, tmp_path)
    rows, schema = damage.read_rows(path), pq.read_schema(path)
    assert len(rows) == 3

    damage.change_amount(path, 1, amount)
    assert damage.read_rows(path) == [rows[0], {**rows[1], amount: changed}, rows[2]]
    damage.change_amount(path, 1, amount, by=-1)
    assert damage.read_rows(path) == rows

    damage.double_row(path, 0, other_index=False, index_column=index)
    assert damage.read_rows(path) == [*rows, rows[0]]
    damage.omit_row(path, 3)
    damage.double_row(path, 0, other_index=True, index_column=index)
    unused = max(row[index] for row in rows) + 1
    assert damage.read_rows(path) == [*rows, {**rows[0], index: unused}]
    damage.omit_row(path, 0)
    assert damage.read_rows(path) == [rows[1], rows[2], {**rows[0], index: unused}]

    form(node, tmp_path)
    damage.other_hashes(path, hashes)
    found = damage.read_rows(path)
    assert all(new[hashes] != old[hashes] for new, old in zip(found, rows, strict=True))
    assert {len(row[hashes]) for row in found} == {len(rows[0][hashes])}
    assert len({row[hashes] for row in found}) == len({row[hashes] for row in rows})
    assert [{**row, hashes: None} for row in found] == [{**row, hashes: None} for row in rows]
    assert pq.read_schema(path) == schema


@pytest.mark.parametrize(("form", "amount", "changed", "index", "hashes"), FORMS)
def test_damage_of_columns_and_bytes(
    node: AnvilNode, tmp_path: Path, form: Form, amount: str, changed: Any, index: str, hashes: str
) -> None:
    path = form(node, tmp_path)
    names, size = pq.read_schema(path).names, path.stat().st_size
    damage.truncate_file(path)
    assert path.stat().st_size == size // 2
    with pytest.raises(pa.ArrowInvalid):
        damage.read_rows(path)
    form(node, tmp_path)
    damage.as_double(path, amount)
    assert pq.read_schema(path).field(amount).type == pa.float64()
    assert {int(row[amount]) for row in damage.read_rows(path)} == {_AMOUNT - 1}
    damage.drop_column(path, amount, hashes)
    assert pq.read_schema(path).names == [name for name in names if name not in (amount, hashes)]


def test_damaged_file_keeps_compression_and_timestamps(node: AnvilNode, tmp_path: Path) -> None:
    path = aws(node, tmp_path)
    damage.omit_row(path, 0)
    columns = pq.read_metadata(path).row_group(0)
    found = {columns.column(number).path_in_schema: columns.column(number) for number in range(columns.num_columns)}
    assert (found["block_timestamp"].physical_type, found["address"].compression) == ("INT96", "SNAPPY")
    lz4 = cryo(node, tmp_path)
    damage.omit_row(lz4, 0)
    assert pq.read_metadata(lz4).row_group(0).column(0).compression == "LZ4"


def test_find_row_returns_the_first_match(node: AnvilNode, tmp_path: Path) -> None:
    path = own(node, tmp_path)
    rows = damage.read_rows(path)
    assert damage.find_row(path, receiver=rows[2]["receiver"], blk=2) == 2
    assert damage.find_row(path, blk=2) == 0
    with pytest.raises(LookupError, match="no row of transfers_2_2"):
        damage.find_row(path, blk=3)
