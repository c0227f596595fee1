"""Staging of a file of a data set: limits, rows that appear again, and a change while the file is read."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from control.networks.data_sets import DataSet
from control.ranges import BlockRange
from pipelines.data_sets import columns, reader, staging
from pipelines.data_sets.errors import CHANGED, FileRefused
from pipelines.data_sets.listing import list_units
from pipelines.data_sets.reader import open_reader
from pipelines.data_sets.staging import Wanted, stage
from pipelines.extract.families import FAMILIES
from tests.datasets.chain_files import OWN_SCHEMA
from tests.integration.test_data_sets import OWN_COLUMNS

TOKEN, WALLET = "0x" + "aa" * 20, "0x" + "bb" * 20
FORM = FAMILIES["evm"].data_set_forms["columns"]


def row(block: int, **values: Any) -> Mapping[str, Any]:
    """Return a transfer in a block."""
    at = datetime.fromtimestamp(block, UTC)
    names = {"hash": f"0x{block:064x}", "tx": f"0x{block:064x}", "token": TOKEN, "sender": WALLET, "receiver": WALLET}
    return {"blk": block, "ix": 0, "pos": 0, "amount": "7", "at": at, **names, **values}


def staged(path: Path, *rows: Mapping[str, Any]) -> tuple[list[tuple[Any, ...]], int]:
    """Write a file, stage it, and return its rows and the number of rows that appeared again."""
    path.parent.mkdir()
    pq.write_table(pa.Table.from_pylist(rows, schema=OWN_SCHEMA), path, compression="zstd")
    past = DataSet("past", "columns", f"{path.parent}/transfers_{{first}}_{{last}}.parquet", OWN_COLUMNS)
    with open_reader(path.parents[1] / "staged.duckdb", "local", [past]) as opened:
        (unit,) = list_units(opened, past, "transfers")
        _, again = stage(opened, "evm", unit, FORM, Wanted({"token": frozenset({TOKEN})}, BlockRange(0, 9)), 9)
        found = opened.run("select block_number, amount_raw::varchar from staged_token_transfers order by all")
        return found.fetchall(), again


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "files" / "transfers_0_9.parquet"


def test_equal_rows_count_once(path: Path) -> None:
    assert staged(path, row(1), row(2), row(1), row(1)) == ([(1, "7"), (2, "7")], 2)


@pytest.mark.parametrize(
    ("limit", "value", "told"),
    [
        ("_MOST_BYTES", 100, r"it has more than 100 bytes; cut it into smaller files$"),
        ("_MOST_UNPACKED_BYTES", 100, r"it has [\d,]+ bytes unpacked, more than 100$"),
        ("_MOST_ROWS", 2, r"it has 3 rows, more than 2; cut it into smaller files$"),
        ("_MOST_WANTED", 2, r"it has more than 2 rows of tracked addresses; cut it into smaller files$"),
        ("_MOST_COLUMNS", 5, r"it has 10 columns, more than 5$"),
    ],
)
def test_file_beyond_a_limit_is_refused(limit: str, value: int, told: str, path: Path) -> None:
    with (
        mock.patch.object(staging if limit == "_MOST_WANTED" else columns, limit, value),
        pytest.raises(FileRefused, match=told),
    ):
        staged(path, row(1), row(2), row(3))


def test_small_file_that_unpacks_to_much_is_refused(path: Path) -> None:
    """A text of 100 MB takes some kilobytes in a file, and more memory than the reader has here."""
    with (
        mock.patch.object(reader, "_MEMORY_MB", 64),
        pytest.raises(FileRefused, match="takes more than 64 MB of memory"),
    ):
        staged(path, row(1), row(2, amount="0" * (100 * 2**20)))
    assert path.stat().st_size < 20_000


def test_file_that_changes_while_it_is_read_is_refused(path: Path) -> None:
    stage_facts = staging._stage_facts

    def replaced(*arguments: Any) -> None:
        stage_facts(*arguments)
        other = path.with_name("other")
        other.write_bytes(path.read_bytes() + b" ")
        other.rename(path)

    with mock.patch.object(staging, "_stage_facts", replaced), pytest.raises(FileRefused, match=CHANGED):
        staged(path, row(1))
