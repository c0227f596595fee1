"""Files of data sets by their names: which blocks or day they hold, and which other files belong to them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest

from control.networks.data_sets import DataSet
from control.networks.definitions import load_networks
from control.ranges import BlockRange
from control.settings import load_settings
from pipelines.data_sets import listing, records
from pipelines.data_sets.collecting import list_due_data_sets
from pipelines.data_sets.errors import FileRefused
from pipelines.data_sets.listing import File, Unit, list_units, unchanged
from pipelines.data_sets.reader import Reader, open_reader
from pipelines.data_sets.records import due_data_sets, note_listing
from pipelines.raw.database import open_warehouse
from tests.unit.pipelines.pricing import raw_warehouse

_LISTED = [("s3://bucket/logs/date=2024-01-01/a.parquet", 5, datetime(2024, 1, 2))]  # noqa: DTZ001 - as DuckDB returns it


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "files").mkdir()
    return tmp_path / "files"


def data_set(folder: Path | str, files: str) -> DataSet:
    return DataSet("past", "aws", f"{folder}/{files}")


def make(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())


def units(folder: Path, files: str, table: str = "logs") -> list[Unit]:
    past = data_set(folder, files)
    with open_reader(folder.parent / "staged.duckdb", "local", [past]) as reader:
        return list_units(reader, past, table)


def named(found: Sequence[Unit]) -> list[tuple[list[str], BlockRange | None, date | None]]:
    return [
        ([file.path.removeprefix(unit.data_set.folder) for file in unit.files], unit.blocks, unit.day) for unit in found
    ]


def test_files_of_blocks_are_in_the_order_of_numbers(folder: Path) -> None:
    make(folder, "t_100_199.parquet", "t_20_29.parquet", "t_0000_0019.parquet")
    assert named(units(folder, "t_{first}_{last}.parquet")) == [
        (["t_0000_0019.parquet"], BlockRange(0, 19), None),
        (["t_20_29.parquet"], BlockRange(20, 29), None),
        (["t_100_199.parquet"], BlockRange(100, 199), None),
    ]


def test_files_of_a_day_are_one_unit(folder: Path) -> None:
    make(folder, "date=2024-03-01/b.parquet", "date=2024-02-29/x.parquet", "date=2024-03-01/a.parquet")
    assert named(units(folder, "date={date}/*.parquet")) == [
        (["date=2024-02-29/x.parquet"], None, date(2024, 2, 29)),
        (["date=2024-03-01/a.parquet", "date=2024-03-01/b.parquet"], None, date(2024, 3, 1)),
    ]


def test_repeated_placeholders_must_agree(folder: Path) -> None:
    make(folder, "from=1/to=9/logs_1_9.csv", "from=1/to=9/logs_1_8.csv", "from=10/to=19/logs_010_019.csv")
    assert named(units(folder, "from={first}/to={last}/{table}_{first}_{last}.csv")) == [
        (["from=1/to=9/logs_1_9.csv"], BlockRange(1, 9), None)
    ]


@pytest.mark.parametrize(
    "name",
    [
        "date=2023-02-29/a.parquet",
        "date=2024-13-01/a.parquet",
        "date=2024-1-1/a.parquet",
        "date=20240101/a.parquet",
        "date=2024-01-01/deeper/a.parquet",
        "date=2024-01-01/a.parquet.crc",
        "other=2024-01-01/a.parquet",
    ],
)
def test_names_without_a_day_are_left_out(folder: Path, name: str) -> None:
    make(folder, name, "date=2024-01-01/kept.parquet")
    assert [names for names, _, _ in named(units(folder, "date={date}/*.parquet"))] == [
        ["date=2024-01-01/kept.parquet"]
    ]


@pytest.mark.parametrize("name", ["t_9_1.parquet", "t_x_9.parquet", "t_-1_9.parquet", f"t_1_{'9' * 19}.parquet"])
def test_names_without_a_range_of_blocks_are_left_out(folder: Path, name: str) -> None:
    make(folder, name, "t_5_5.parquet")
    assert named(units(folder, "t_{first}_{last}.parquet")) == [(["t_5_5.parquet"], BlockRange(5, 5), None)]


def test_characters_of_patterns_are_literal_in_names(folder: Path) -> None:
    make(folder, "a+b(1)_1_2.parquet", "aab1_1_2.parquet")
    assert len(units(folder, "a+b(1)_{first}_{last}.parquet")) == 1


def test_a_folder_without_files_has_no_units(folder: Path) -> None:
    assert units(folder, "{date}.parquet") == []


def test_quotes_in_names_are_plain_text(folder: Path) -> None:
    make(folder, 'it\'s "x"; --/2024-01-01.parquet')
    assert [unit.day for unit in units(folder, 'it\'s "x"; --/{date}.parquet')] == [date(2024, 1, 1)]


@pytest.mark.parametrize("name", ["2024-01-02/a[1].parquet", "2024-01-02/a?.parquet", "2024-01-02/*.parquet"])
def test_names_that_are_patterns_themselves_are_left_out(folder: Path, name: str) -> None:
    make(folder, name, "2024-01-01/a.parquet")
    assert [unit.name for unit in units(folder, "{date}/*.parquet")] == ["2024-01-01/a.parquet"]


def test_links_to_elsewhere_are_left_out(folder: Path) -> None:
    make(folder, "2024-01-01.parquet")
    make(folder.parent / "elsewhere", "2024-01-02.parquet")
    (folder / "2024-01-02.parquet").symlink_to(folder.parent / "elsewhere" / "2024-01-02.parquet")
    (folder / "2024-01-03.parquet").symlink_to("2024-01-01.parquet")
    (folder / "2024-01-04.parquet").symlink_to("nowhere")
    assert [unit.name for unit in units(folder, "{date}.parquet")] == ["2024-01-01.parquet", "2024-01-03.parquet"]


def test_too_many_files_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(folder, "2024-01-01.parquet", "2024-01-02.parquet")
    monkeypatch.setattr(listing, "_MOST_FILES", 1)
    with pytest.raises(FileRefused, match="it has more than 1 files"):
        units(folder, "{date}.parquet")


@pytest.mark.parametrize(
    ("files", "name", "expected"),
    [
        ("{table}_{first}_{last}.parquet", "logs_001_010.parquet", "blocks_001_010.parquet"),
        ("{table}/{first}/{table}_{first}_{last}.csv", "logs/1/logs_1_9.csv", "blocks/1/blocks_1_9.csv"),
        ("{table}/{date}/*.parquet", "logs/2024-01-01/part-7.parquet", "blocks/2024-01-01/*.parquet"),
    ],
)
def test_files_of_another_kind_are_named_by_the_pattern(folder: Path, files: str, name: str, expected: str) -> None:
    make(folder, name)
    (unit,) = units(folder, files)
    assert unit.paths_of("logs", "logs") == [f"{folder}/{name}"]
    assert unit.paths_of("blocks", "logs") == [f"{folder}/{expected}"]


def test_several_files_of_a_day_have_one_pattern_of_another_kind(folder: Path) -> None:
    make(folder, "logs/2024-01-01/a.parquet", "logs/2024-01-01/b.parquet")
    (unit,) = units(folder, "{table}/{date}/*.parquet")
    assert unit.paths_of("blocks", "logs") == [f"{folder}/blocks/2024-01-01/*.parquet"]


def test_size_and_time_show_a_change(folder: Path) -> None:
    make(folder, "2024-01-01.parquet")
    path = folder / "2024-01-01.parquet"
    past = data_set(folder, "{date}.parquet")
    with open_reader(folder.parent / "staged.duckdb", "local", [past]) as reader:
        (unit,) = list_units(reader, past, "logs")
        assert unchanged(reader, unit)
        path.write_bytes(b"longer than before, and later")
        assert not unchanged(reader, unit)


def test_a_listing_without_files_after_one_with_files_is_a_failure(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store's error in an answer of success has no files either."""
    monkeypatch.setattr(records, "_FRESH", timedelta(days=-1))
    definition = load_networks(load_settings({}).networks_file, {})["ethereum"]
    network = replace(definition, data_sets=(data_set(folder, "t_{first}_{last}.parquet"),))
    with open_warehouse(folder.parent / "warehouse.duckdb") as connection:

        def listed() -> tuple[int, str | None]:
            list_due_data_sets(connection, [network], folder.parent, 1)
            row = connection.execute(
                "select (select count(*) from raw.data_files), detail from raw.data_sets"
            ).fetchone()
            assert row is not None
            return row[0], row[1]

        assert listed() == (0, None)
        make(folder, "t_0_9.parquet")
        assert listed() == (1, None)
        (folder / "t_0_9.parquet").unlink()
        count, detail = listed()
        assert count == 1
        assert detail is not None
        assert "past lists no files, but had some" in detail
        make(folder, "t_10_19.parquet")
        assert listed() == (1, None)


class StoreOfOneFile(Reader):
    """Reply to each statement with the one file of a store, and record its parameters."""

    def __init__(self) -> None:
        self.listed: list[object] = []

    def run(self, statement: str, parameters: object = ()) -> "StoreOfOneFile":  # type: ignore[override]
        self.listed.append(parameters)
        return self

    def fetchall(self) -> Iterator[tuple[object, ...]]:
        return iter([(_LISTED[0][0],)] if len(self.listed) == 1 else _LISTED)


def test_files_of_a_store_are_listed_without_a_request_for_each() -> None:
    store, past = StoreOfOneFile(), data_set("s3://bucket", "logs/date={date}/*.parquet")
    assert list_units(store, past, "logs") == [Unit(past, (File(*_LISTED[0]),), None, date(2024, 1, 1))]
    assert store.listed[1] == ["s3://bucket/logs/date=*/*.parquet"]


def test_listing_counts_for_an_hour_unless_the_clock_was_ahead(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    past, noon = data_set(folder, "date={date}/*.parquet"), datetime(2026, 1, 1, 12)  # noqa: DTZ001 - as DuckDB returns it
    due = []
    with raw_warehouse() as raw:
        for listed_at, now in ((0, 59), (0, 60), (10**6, 0)):
            monkeypatch.setattr(records, "stored_now", lambda at=listed_at: noon + timedelta(minutes=at))
            note_listing(raw.connection, "local", past.name, None)
            monkeypatch.setattr(records, "stored_now", lambda at=now: noon + timedelta(minutes=at))
            due.append(due_data_sets(raw.connection, "local", [past]))
    assert due == [[], [past], [past]]
