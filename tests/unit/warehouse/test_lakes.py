"""Lakes: every commit is a compare-and-swap, numbers are exact, and what fails stores nothing."""

import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path

import duckdb
import psycopg
import pytest

from tests import CHECKOUT
from tests.chain.process import free_port
from tests.datasets.object_store import ObjectStore
from tests.unit.warehouse.tables import TABLES
from warehouse import extensions
from warehouse.extensions import ExtensionError, load_extension
from warehouse.lakes import Lake, LakeBusyError, LakeConflictError, LakeError, LakePlace, OpenLake

MakeLake = Callable[..., Lake]


@pytest.fixture
def make_lake(empty_database: str, tmp_path: Path) -> MakeLake:
    def make(
        tables: dict[str, list[tuple[str, str]]] = TABLES, data: str | None = None, temporary: Path = tmp_path
    ) -> Lake:
        return Lake(LakePlace(empty_database, data or str(tmp_path / "lake")), "local", tables, temporary)

    return make


@pytest.fixture
def lake(make_lake: MakeLake) -> Lake:
    return make_lake()


@pytest.fixture
def objects() -> Iterator[ObjectStore]:
    with ObjectStore() as store:
        store.make_bucket("facts")
        yield store


def insert(opened: OpenLake, *numbers: int) -> None:
    for number in numbers:
        opened.run("insert into lake.facts values (?, 'x')", [number])


def once(opened: OpenLake, work: Callable[[], None]) -> None:
    """Do the work in a transaction that is not repeated."""
    with opened.transaction():
        work()


def stored(lake: Lake) -> list[int]:
    with lake.open() as opened:
        return [number for (number,) in opened.run("select block_number from lake.facts order by 1").fetchall()]


def end_sessions(catalogue: str, condition: str = "true") -> int:
    """End sessions of the database as its administrator; return their number."""
    with psycopg.connect(catalogue, autocommit=True) as session:
        row = session.execute(
            f"""
            select count(pg_terminate_backend(pid)) from pg_stat_activity
            where datname = current_database() and pid != pg_backend_pid() and {condition}
            """  # type: ignore[arg-type]
        ).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.ci
def test_amounts_come_back_exactly(lake: Lake) -> None:
    numbers = [0, 2**127, 2**128, 2**255, 2**256 - 1, -(2**255)]
    with lake.open() as opened:
        opened.commit(
            lambda: opened.run(
                "insert into lake.facts select 1, unnest(?::varchar[])::bignum::varchar", [list(map(str, numbers))]
            )
        )
    with lake.open() as opened:
        found = opened.run("select amount, sum(amount::bignum)::varchar from lake.facts group by 1").fetchall()
    assert sorted(found) == sorted((str(number), str(number)) for number in numbers)


@pytest.mark.ci
@pytest.mark.parametrize("type_", ["hugeint", "double", "struct(a hugeint)"])
def test_a_column_that_is_not_exact_is_refused(make_lake: MakeLake, type_: str) -> None:
    with (
        pytest.raises(LakeError, match=r"local: the lake's column facts.amount has the type .*amounts are text$"),
        make_lake({"facts": [("amount", type_)]}).open(),
    ):
        pass


def test_a_column_of_a_later_release_is_added(lake: Lake, make_lake: MakeLake) -> None:
    with lake.open() as opened:
        opened.commit(lambda: insert(opened, 1))
    with make_lake({**TABLES, "facts": [*TABLES["facts"], ("origin", "varchar")]}).open() as opened:
        assert opened.run("from lake.facts").fetchall() == [(1, "x", None)]


def test_rows_that_exceed_the_memory_go_to_the_disk(make_lake: MakeLake, tmp_path: Path) -> None:
    lake = make_lake(temporary=tmp_path / "of" / "lakes")
    with lake.open() as opened:
        opened.run("set memory_limit = '40MB'")
        opened.run(
            "create temp table many as select range as number, md5(range::varchar) as text from range(1_000_000)"
        )
        assert opened.run("select count(*), count(distinct text) from many").fetchall() == [(1_000_000, 1_000_000)]


@pytest.mark.proof("of two commits to a lake at once, the second stores nothing")
def test_the_second_of_two_commits_fails_and_stores_nothing(lake: Lake) -> None:
    with lake.open() as first, lake.open() as second:

        def overtaken() -> None:
            insert(first, 1)
            second.commit(lambda: insert(second, 2))

        with pytest.raises(LakeConflictError):
            once(first, overtaken)
        assert stored(lake) == [2]
        first.commit(lambda: insert(first, 3))
    assert stored(lake) == [2, 3]


@pytest.mark.ci
def test_all_of_a_transaction_is_repeated_after_a_conflict(lake: Lake) -> None:
    with lake.open() as first, lake.open() as second:
        seen: list[int] = []

        def insert_next() -> None:
            row = first.run("select coalesce(max(block_number), 0) from lake.facts").fetchone()
            assert row is not None
            seen.append(row[0])
            if len(seen) == 1:
                second.commit(lambda: insert(second, 7))
            insert(first, row[0] + 1)

        first.commit(insert_next)
    assert seen == [0, 7]
    assert stored(lake) == [7, 8]


def test_a_second_writer_waits_and_names_the_first(lake: Lake) -> None:
    with (
        lake.writing("giving facts", 1),
        pytest.raises(LakeBusyError, match="the lake is being written by 'ledgermart: giving facts' from 127"),
        lake.writing("compaction", 0),
    ):
        pass
    with lake.writing("compaction", 0) as opened:
        opened.commit(lambda: insert(opened, 1))


@pytest.mark.release
@pytest.mark.parametrize("times", [3, 100])
def test_a_writer_that_has_lost_its_lock_changes_nothing(
    lake: Lake, empty_database: str, times: int, tmp_path: Path
) -> None:
    """Suspended in a transaction until PostgreSQL gives up its session with the lock, it continues too late."""
    stored(lake)
    command = [sys.executable, "-m", "tests.unit.warehouse.suspended_writer", empty_database, str(tmp_path / "lake")]
    with subprocess.Popen([*command, str(times)], cwd=CHECKOUT) as asleep:
        for number in range(times):
            changed = os.waitid(os.P_PID, asleep.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            assert changed is not None
            assert changed.si_code == os.CLD_STOPPED
            assert end_sessions(empty_database, "application_name = 'ledgermart: asleep'") == 1
            with lake.writing("awake", 1) as awake:
                awake.commit(partial(insert, awake, number))
            asleep.send_signal(signal.SIGCONT)
    assert asleep.returncode == 0
    assert stored(lake) == list(range(times))


@pytest.mark.ci
def test_sessions_that_are_cut_leave_nothing(lake: Lake, empty_database: str) -> None:
    with lake.open() as opened:

        def cut() -> None:
            insert(opened, 1)
            assert end_sessions(empty_database) > 0
            insert(opened, 2)

        with pytest.raises(LakeError, match="local: the lake does not answer, or refuses"):
            once(opened, cut)
    assert stored(lake) == []
    with lake.open() as opened:
        opened.commit(lambda: insert(opened, 3))
    assert stored(lake) == [3]


@pytest.mark.proof("a killed store of objects leaves nothing of a transaction in the lake")
def test_a_store_that_is_killed_leaves_nothing(
    make_lake: MakeLake, objects: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in objects.variables.items():
        monkeypatch.setenv(name, value)
    lake = make_lake(data="s3://facts/of/all")
    with lake.open() as opened:
        opened.commit(lambda: insert(opened, 1))
        objects.stop()
        with pytest.raises(LakeError) as caught:
            opened.commit(lambda: insert(opened, 2))
        assert objects.secret_key not in str(caught.value)
        objects.start()
        opened.commit(lambda: insert(opened, 3))
    assert stored(lake) == [1, 3]


def test_no_error_names_the_password(tmp_path: Path) -> None:
    place = LakePlace(f"postgresql://someone:the-password@127.0.0.1:{free_port()}/nothing", str(tmp_path))
    lake = Lake(place, "local", TABLES, tmp_path)
    for use in (lake.open, lambda: lake.writing("a test", 0)):
        with pytest.raises(LakeError, match="check PostgreSQL") as caught, use():
            pass
        assert "the-password" not in "".join(traceback.format_exception(caught.value))


def test_sessions_of_the_engine_have_limits_of_time(lake: Lake) -> None:
    with lake.open() as opened:
        for name, value in (("lock_timeout", "10s"), ("statement_timeout", "5min")):
            setting = f"select current_setting(''{name}'')"
            found = opened.run(f"from postgres_query('__ducklake_metadata_lake', '{setting}')").fetchall()
            assert found == [(value,)]


def test_a_locked_catalogue_is_named_at_the_limit(lake: Lake, empty_database: str, tmp_path: Path) -> None:
    stored(lake)
    place = LakePlace(f"{empty_database}?options=-c%20lock_timeout%3D1ms", str(tmp_path / "lake"))
    with psycopg.connect(empty_database) as session:
        session.execute("lock table lake_local.ducklake_snapshot in access exclusive mode")
        with pytest.raises(LakeError, match="canceling statement due to lock timeout") as caught:
            stored(Lake(place, "local", TABLES, tmp_path))
    assert not isinstance(caught.value, LakeConflictError)


@pytest.mark.release
@pytest.mark.parametrize("times", [20, 5_000])
def test_interleaved_transactions_of_two_writers_lose_and_double_no_row(lake: Lake, times: int) -> None:
    """Each transaction continues the range of the one before it, of either writer."""
    stored(lake)
    failed: list[BaseException] = []

    def write(writer: str) -> None:
        try:
            with lake.open() as opened:
                done = 0
                while done < times:
                    # On a busy machine, one writer may lose to the other many times; it stored nothing then.
                    with suppress(LakeConflictError):
                        opened.commit(lambda: extend(opened, writer))
                        done += 1
        except BaseException as error:  # noqa: BLE001 - the test shows it
            failed.append(error)

    def extend(opened: OpenLake, writer: str) -> None:
        row = opened.run("select coalesce(max(to_block), -1) + 1 from lake.coverage").fetchone()
        assert row is not None
        insert(opened, row[0])
        opened.run("insert into lake.coverage values (?, ?, ?)", [writer, row[0], row[0]])

    threads = [threading.Thread(target=write, args=[writer]) for writer in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert stored(lake) == list(range(2 * times))
    with lake.open() as opened:
        assert opened.run("select from_block from lake.coverage order by 1").fetchall() == [
            (number,) for number in range(2 * times)
        ]
        assert opened.run("select writer, count(*) from lake.coverage group by 1 order by 1").fetchall() == [
            ("a", times),
            ("b", times),
        ]


def files_of(lake: Lake) -> set[str]:
    with lake.open() as opened:
        return {path for (path,) in opened.run("from glob(?)", [f"{lake.folder}**/*.parquet"]).fetchall()}


def write_small_files(lake: Lake) -> None:
    """Commit six blocks one by one, each with an extended range of coverage, and delete one block again."""
    with lake.writing("small files", 1) as opened:
        opened.run("insert into lake.coverage values ('a', 0, 0)")
        for number in range(6):
            with opened.transaction():
                insert(opened, number)
                opened.run("update lake.coverage set to_block = ?", [number])
        opened.run("delete from lake.facts where block_number = 4")


@pytest.mark.proof("upkeep of a lake merges small files and changes no fact")
@pytest.mark.parametrize("is_s3", [False, pytest.param(True, marks=pytest.mark.release)])
def test_small_files_are_merged_and_deleted_once_their_snapshots_expire(
    make_lake: MakeLake, is_s3: bool, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    data = None
    if is_s3:
        objects = request.getfixturevalue("objects")
        for name, value in objects.variables.items():
            monkeypatch.setenv(name, value)
        data = "s3://facts/tidied"
    lake = make_lake(data=data)
    expected = [0, 1, 2, 3, 5]
    write_small_files(lake)
    before = files_of(lake)
    first = lake.tidy(timedelta(days=7), 1)
    assert first == (len(expected), 0, 0)
    assert files_of(lake) > before
    assert stored(lake) == expected
    second = lake.tidy(timedelta(0), 1)
    assert second.expired > 6
    assert second.deleted >= len(before) - 1
    assert len(files_of(lake)) <= 3
    assert stored(lake) == expected
    with lake.open() as opened:
        assert opened.run("from lake.coverage").fetchall() == [("a", 0, 5)]
        assert opened.run("select count(*) from ducklake_snapshots('lake')").fetchall() == [(1,)]
    write_small_files(lake)
    lake.tidy(timedelta(0), 1)
    assert stored(lake) == sorted([*expected, *expected])


@pytest.mark.proof("files of a killed writer of the lake are deleted only on request")
def test_files_of_a_killed_writer_are_deleted_only_on_request_and_by_age(lake: Lake) -> None:
    with lake.open() as opened:
        opened.commit(lambda: insert(opened, 1))
    (kept,) = files_of(lake)
    orphan = Path(kept).with_name("orphan.parquet")
    orphan.write_bytes(Path(kept).read_bytes())
    lake.tidy(timedelta(0), 1)
    assert lake.orphans(timedelta(days=1), 1, is_deleted=True) == []
    assert lake.orphans(timedelta(0), 1, is_deleted=False) == [str(orphan)]
    assert orphan.exists()
    assert lake.orphans(timedelta(0), 1, is_deleted=True) == [str(orphan)]
    assert files_of(lake) == {kept}
    assert stored(lake) == [1]


def test_a_lake_is_checked_without_being_changed(make_lake: MakeLake, tmp_path: Path) -> None:
    lake = make_lake()
    assert not lake.exists()
    with pytest.raises(LakeError, match=r"local: there is no folder .*/lake; mount or create it"):
        lake.check_store()
    (tmp_path / "lake").mkdir()
    lake.check_store()
    lake.check_lock()
    assert not lake.exists()
    stored(lake)
    assert lake.exists()
    with lake.open(is_read_only=True) as opened, pytest.raises(LakeError, match="read-only"):
        insert(opened, 1)


def test_an_extension_of_another_version_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extensions.duckdb, "__version__", "1.5.4")
    with pytest.raises(ExtensionError, match=r"the package duckdb-extension-ducklake is not for DuckDB 1\.5\.4"):
        load_extension(duckdb.connect(), "ducklake")
    with pytest.raises(ExtensionError, match="the package duckdb-extension-no-such is not installed"):
        load_extension(duckdb.connect(), "no_such")
