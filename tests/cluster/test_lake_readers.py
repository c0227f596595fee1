"""Readers of a lake: DuckDB, pyarrow and ClickHouse get the same exact sum by the code of `docs/reference/lake.md`."""

import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import duckdb
import polars as pl
import psycopg
import pytest
from pyarrow import fs, parquet

from control.networks.definitions import load_networks
from pipelines.lake.tables import columns_of, table_names
from pipelines.tables.sources import TABLES
from tests import CHECKOUT
from tests.datasets.object_store import ObjectStore
from tests.unit.control.postgres import unique_name
from warehouse.extensions import load_extension
from warehouse.lakes import Lake, LakePlace, OpenLake
from warehouse.s3 import allow_s3

PAGE = (CHECKOUT / "docs" / "reference" / "lake.md").read_text()
CHDB = CHECKOUT / "build" / "chdb" / "venv" / "bin" / "python"
TABLE = "token_transfers"
MODULUS = 2**256
# A column of a later release, and a block that was stored before.
ADDED, OLD = "to_address", 1000
_BUCKET = "facts"
_BLOCK = re.compile(r"^```(sql|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SECTION = re.compile(r"^### `(\w+)`\n(.*?)(?=^##)", re.MULTILINE | re.DOTALL)
_COLUMN = re.compile(r"^\| `(\w+)` \| `([^`]+)` \| (.*) \|$", re.MULTILINE)
Files = Sequence[tuple[str, str | None]]


def example(word: str) -> str:
    """Return the one example of the page that contains a word."""
    (text,) = (text for _, text in _BLOCK.findall(PAGE) if word in text)
    return str(text)


def replaced(text: str, **values: str) -> str:
    """Replace words of an example, each of which it must contain."""
    for old, new in values.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


def test_page_lists_all_tables_with_their_columns() -> None:
    networks = load_networks(CHECKOUT / "control" / "networks" / "networks.toml", {}).values()
    (expected,) = {tuple(table_names(network)) for network in networks if network.family == "evm"}
    found = {name: _COLUMN.findall(text) for name, text in _SECTION.findall(PAGE)}
    assert list(found) == list(expected)
    for name, columns in found.items():
        assert [(column, type_) for column, type_, _ in columns] == columns_of(name)
        raw = {column.name: column.description for column in TABLES[name].columns}
        for column, _, meaning in columns:
            assert meaning == raw.get(column, meaning)


class Stored(NamedTuple):
    """A lake with transfers.

    Attributes:
        catalogue: URL of a role that may only read.
        objects: the store of its files; None: they are in a folder.
        total: sum of its amounts.
        has_deletes: some of its rows are deleted by delete files.
    """

    catalogue: str
    objects: ObjectStore | None
    total: int
    has_deletes: bool


class Transfers:
    """Transfers in a lake, and the same in plain Python."""

    def __init__(self, opened: OpenLake, amounts: dict[int, int]) -> None:
        self.opened = opened
        self.amounts = amounts

    def insert(self, amounts: dict[int, int]) -> None:
        """Store an amount for each block."""
        self.opened.load("incoming", _frame(amounts))
        self.opened.commit(lambda: self.opened.run(f"insert into lake.{TABLE} by name select * from incoming"))
        self.amounts |= amounts

    def delete(self, blocks: Sequence[int]) -> None:
        """Delete the amounts of some blocks."""
        self.opened.commit(
            lambda: self.opened.run(f"delete from lake.{TABLE} where list_contains(?, block_number)", [list(blocks)])
        )
        for block in blocks:
            del self.amounts[block]

    def replace(self, amounts: dict[int, int]) -> None:
        """Store other amounts, as a correction by a second reading does."""
        self.delete(list(amounts))
        self.insert(amounts)

    def compact(self) -> None:
        """Merge small files, and rewrite those with deleted rows."""
        self.opened.run(f"call ducklake_merge_adjacent_files('lake', '{TABLE}')")
        self.opened.run(f"call ducklake_rewrite_data_files('lake', '{TABLE}', delete_threshold => 0)")


def _frame(amounts: dict[int, int]) -> pl.DataFrame:
    texts = {name: "0x" for name, type_ in columns_of(TABLE) if type_ == "varchar"}
    numbers = {name: 0 for name, type_ in columns_of(TABLE) if type_ != "varchar"}
    return pl.DataFrame(
        [{**texts, **numbers, "block_number": block, "amount_raw": str(amount)} for block, amount in amounts.items()]
    )


def with_deletes(transfers: Transfers) -> None:
    """Store large amounts, and delete and replace some of them in several snapshots."""
    transfers.insert({block: 2**255 + block for block in range(100)})
    transfers.insert({block: MODULUS - 1 - block for block in range(100, 150)})
    transfers.replace({block: 2**255 - block for block in range(20, 30)})
    transfers.delete([40, 41, 120])


def compacted(transfers: Transfers) -> None:
    """Leave superseded files beside compacted ones."""
    with_deletes(transfers)
    transfers.compact()


def deletes_after_compaction(transfers: Transfers) -> None:
    """Delete rows of compacted files, too."""
    compacted(transfers)
    transfers.replace({0: 1, 25: 0, 149: 2**255})
    transfers.delete([1])


STATES = (with_deletes, compacted, deletes_after_compaction)
# The last state has everything of the others.
PLACES = [
    pytest.param((place, fill), marks=[] if fill is STATES[-1] else pytest.mark.release)
    for fill in STATES
    for place in ("folder", "s3")
]


@pytest.fixture(scope="module")
def objects() -> Iterator[ObjectStore]:
    with ObjectStore() as store:
        store.make_bucket(_BUCKET)
        yield store


@pytest.fixture
def reader(empty_database: str) -> Iterator[str]:
    """Name of a role without rights."""
    name = unique_name()
    yield name
    with psycopg.connect(empty_database, autocommit=True) as session:
        session.execute(f"drop owned by {name}; drop role {name}")  # type: ignore[arg-type]


@pytest.fixture(params=PLACES, ids=lambda param: f"{param[0]}-{param[1].__name__}")
def lake(
    request: pytest.FixtureRequest, empty_database: str, reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Stored:
    place, fill = request.param
    objects, data = None, str(tmp_path / "lake")
    if place == "s3":
        objects = request.getfixturevalue("objects")
        for name, value in objects.variables.items():
            monkeypatch.setenv(name, value)
        data = f"s3://{_BUCKET}/{empty_database.rpartition('/')[2]}"
    earlier = {TABLE: [column for column in columns_of(TABLE) if column[0] != ADDED]}
    with Lake(LakePlace(empty_database, data), "local", earlier, tmp_path).open() as opened:
        old = f"insert into lake.{TABLE} (block_number, token_address, amount_raw) values ({OLD}, '0x', '5')"
        opened.commit(lambda: opened.run(old))
    with Lake(LakePlace(empty_database, data), "local", {TABLE: columns_of(TABLE)}, tmp_path).open() as opened:
        transfers = Transfers(opened, {OLD: 5})
        fill(transfers)
    grants = replaced(example("create role"), lake_reader=reader, lake_ethereum="lake_local")
    with psycopg.connect(empty_database, autocommit=True) as session:
        session.execute(grants)  # type: ignore[arg-type]
    total = sum(transfers.amounts.values())
    assert total > MODULUS
    reading = empty_database.replace("//ledgermart@", f"//{reader}@")
    return Stored(reading, objects, total, has_deletes=fill is not compacted)


def listed(lake: Stored) -> Files:
    """Return the files of the newest snapshot, by the query of the page."""
    with psycopg.connect(lake.catalogue) as session:
        cursor = session.execute(replaced(example("with folders"), lake_ethereum="lake_local"))  # type: ignore[arg-type]
        cursor.nextset()
        files = cursor.fetchall()
    assert any(delete is not None for _, delete in files) == lake.has_deletes
    return files


def check_duckdb(lake: Stored, files: Files) -> None:
    """Compare DuckDB's sum with the expected one, and its list of files with the catalogue's."""
    url = "postgresql://lake_reader@db.example/ledgermart"
    text = replaced(example("bignum"), **{url: lake.catalogue, "lake_ethereum": "lake_local"})
    with closing(duckdb.connect()) as connection:
        for name in ("postgres_scanner", "ducklake"):
            load_extension(connection, name)
        if lake.objects is not None:
            allow_s3(connection)
        connection.execute("set threads = 2")
        text = re.sub(r"^install \w+; load \w+;\n", "", text, flags=re.MULTILINE)
        assert [row[2] for row in connection.execute(text).fetchall()] == [str(lake.total)]
        function = re.search(r"from ducklake_list_files\([^)]*\)", PAGE)
        assert function is not None
        own = connection.execute(f"select data_file, delete_file {function[0]} order by all").fetchall()
        assert own == sorted(files)


@pytest.mark.ci
def test_pyarrow_reads_the_same_exact_sum_as_duckdb(lake: Stored) -> None:
    files = listed(lake)
    check_duckdb(lake, files)
    store = None
    if lake.objects is not None:
        store = fs.S3FileSystem(
            access_key=lake.objects.access_key,
            secret_key=lake.objects.secret_key,
            region=lake.objects.region,
            scheme="http",
            endpoint_override=lake.objects.address,
        )
    paths = [tuple(None if path is None else path.removeprefix("s3://") for path in pair) for pair in files]
    names: dict[str, object] = {"files": paths, "store": store}
    exec(example("def read_files"), names)
    exec(replaced(example("total = sum"), **{'["amount_raw"])\n': '["amount_raw"], store)\n'}), names)
    assert names["total"] == lake.total
    rows = names["read_files"](paths, ["block_number", ADDED], store).to_pylist()  # type: ignore[operator]
    assert [row["block_number"] for row in rows if row[ADDED] is None] == [OLD]


@pytest.mark.parametrize("lake", [pytest.param(("folder", compacted), marks=pytest.mark.release)], indirect=True)
def test_folder_has_more_rows_than_the_snapshot(lake: Stored, tmp_path: Path) -> None:
    tables = [parquet.read_table(file) for file in (tmp_path / "lake").rglob("*.parquet")]
    amounts = [
        int(amount) for table in tables if "pos" not in table.column_names for amount in table["amount_raw"].to_pylist()
    ]
    assert sum(amounts) > lake.total


@pytest.mark.release
def test_clickhouse_reads_the_same_exact_sum_as_duckdb(lake: Stored) -> None:
    files = listed(lake)
    check_duckdb(lake, files)
    query = example("leftPad")
    deletes = [delete for _, delete in files if delete is not None]
    if deletes:
        query = replaced(query, **{"s3('DELETE_FILES', 'Parquet')": source(lake, deletes)})
    else:
        query = query.partition("where")[0]
    data = source(lake, [data for data, _ in files])
    query = replaced(query, **{"s3('DATA_FILES', 'Parquet')": data})
    ((high, low),) = clickhouse(query)
    assert int(high) * 10**39 + int(low) == lake.total
    if not deletes:
        assert clickhouse(f"select sum(toUInt256(amount_raw)) from {data}") == [[str(lake.total % MODULUS)]]
        assert clickhouse(f"select toUInt256('{MODULUS}')") == [["0"]]


def source(lake: Stored, paths: Sequence[str]) -> str:
    """Return the ClickHouse function that reads some files of one folder."""
    folders, names = zip(*(path.rsplit("/", 1) for path in paths), strict=True)
    (folder,) = set(folders)
    pattern = f"{folder}/{{{','.join(names)}}}"
    if lake.objects is None:
        return f"file('{pattern}', 'Parquet')"
    url = pattern.replace("s3:/", lake.objects.url, 1)
    return f"s3('{url}', '{lake.objects.access_key}', '{lake.objects.secret_key}', 'Parquet')"


def clickhouse(query: str) -> list[list[str]]:
    """Run a query in ClickHouse, in an environment of its own, and return its rows as text."""
    assert CHDB.exists(), "ClickHouse is not installed; run `make build/chdb/installed`"
    script = Path(__file__).with_name("chdb_query.py")
    done = subprocess.run([CHDB, script], input=query, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]
