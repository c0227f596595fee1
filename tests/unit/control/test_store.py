"""The store itself: migrations, transactions, crashes, concurrent processes."""

import fcntl
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, create_engine, event, inspect, make_url, select, text, update
from sqlalchemy.pool import Pool

from control import revision, service_secrets, tenants
from control.errors import StoreLost, StoreUnavailable
from control.models import Base, ServiceSecret, Tenant
from control.settings import Settings, load_settings
from control.store import ControlStore, open_store
from tests.damages import Damage, cut, garbage, overwritten
from tests.unit.control.conftest import World, on_both, on_postgres, unique_name
from tests.unit.control.postgres import RESETTING, new_database
from tests.unit.control.second_writer import start_waiting
from tests.waiting import eventually

CHECKOUT = Path(__file__).resolve().parents[3]


def plain_engine(url: str) -> Engine:
    return create_engine(make_url(url).set(drivername="sqlite" if url.startswith("sqlite") else "postgresql+psycopg"))


def run_python(code: str, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def tell(process: "subprocess.Popen[str]", line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


@on_both
def test_migrate_makes_the_current_schema_and_runs_again(
    empty_store: ControlStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert not empty_store.is_current()
    monkeypatch.chdir(tmp_path)
    empty_store.migrate()
    assert empty_store.is_current()
    with empty_store.read() as session:
        key = service_secrets.get(session, service_secrets.CURSOR_KEY)
    empty_store.migrate()
    with empty_store.read() as session:
        assert service_secrets.get(session, service_secrets.CURSOR_KEY) == key
        assert revision.read_revision(session) == 0
    assert len(key) == 32


def test_checking_the_version_creates_nothing(tmp_path: Path) -> None:
    store = open_store(load_settings({"LEDGERMART_DATA_DIR": str(tmp_path)}))
    assert not store.is_current()
    with pytest.raises(StoreUnavailable), store.read() as session:
        session.execute(select(Tenant))
    store.close()
    assert list(tmp_path.iterdir()) == []


@on_both
def test_migrations_give_the_models(store: ControlStore, settings: Settings) -> None:
    engine = plain_engine(settings.control_url)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
    engine.dispose()


@on_both
def test_migrations_match_the_models_beyond_alembics_comparison(
    store: ControlStore, settings: Settings, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if settings.control_url.startswith("sqlite"):
        assert describe(settings.control_url) == describe_models(f"sqlite:///{tmp_path / 'models.db'}")
    else:
        with new_database(request.getfixturevalue("postgres_server"), unique_name()) as url:
            assert describe(settings.control_url) == describe_models(url)


def describe_models(url: str) -> dict[str, Any]:
    engine = plain_engine(url)
    Base.metadata.create_all(engine)
    engine.dispose()
    return describe(url)


def describe(url: str) -> dict[str, Any]:
    """Return the checks, conditional indexes and foreign keys of every table."""
    engine = plain_engine(url)
    inspector = inspect(engine)
    described = {
        table: {
            "checks": sorted(str(row) for row in inspector.get_check_constraints(table)),
            "indexes": sorted(
                str(row | {"dialect_options": {name: str(value) for name, value in row["dialect_options"].items()}})
                for row in inspector.get_indexes(table)
            ),
            "foreign_keys": sorted(str(row) for row in inspector.get_foreign_keys(table)),
            "unique": sorted(str(row) for row in inspector.get_unique_constraints(table)),
        }
        for table in inspector.get_table_names()
        if table != "alembic_version"
    }
    engine.dispose()
    return described


def test_keys_of_subjects_and_windows_are_never_used_twice(tmp_path: Path) -> None:
    store = open_store(load_settings({"LEDGERMART_DATA_DIR": str(tmp_path)}))
    store.migrate()
    with store.read() as session:
        numbered = session.execute(text("select name from sqlite_master where sql like '%AUTOINCREMENT%'"))
        assert {row.name for row in numbered} == {
            *("operations", "subjects", "tracking_windows"),
            *("priced_items", "manual_sources", "price_pairs", "supported_pairs", "manual_prices"),
        }
    store.close()


@pytest.mark.release
@on_both
def test_processes_may_migrate_at_once(settings: Settings) -> None:
    code = (
        "import sys; from control.settings import load_settings; from control.store import open_store\n"
        "store = open_store(load_settings({'LEDGERMART_CONTROL_URL': sys.argv[1]})); print('ready', flush=True)\n"
        "sys.stdin.readline(); store.migrate(); assert store.is_current()"
    )
    processes = [run_python(code, settings.control_url) for _ in range(4)]
    assert [said(process) for process in processes] == ["ready\n"] * 4
    for process in processes:
        tell(process, "go")
    assert [process.communicate() for process in processes] == [("", "")] * 4
    store = open_store(settings)
    with store.read() as session:
        assert sorted(session.scalars(select(ServiceSecret.name))) == sorted(service_secrets.NAMES)
    store.close()


@on_postgres
def test_a_second_migration_waits_for_the_first(settings: Settings, empty_store: ControlStore) -> None:
    is_under_way, may_go_on = threading.Event(), threading.Event()

    def hold(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "CREATE TABLE tenants" in statement and not is_under_way.is_set():
            is_under_way.set()
            may_go_on.wait()

    other = open_store(settings, wait_seconds=600)
    event.listen(Engine, "before_cursor_execute", hold)
    try:
        with ThreadPoolExecutor() as executor:
            try:
                first = executor.submit(empty_store.migrate)
                eventually(lambda: is_under_way.is_set() or first.done(), "the first migration is under way")
                second = start_waiting(settings, other.migrate)
            finally:
                may_go_on.set()
            first.result()
            second.result()
    finally:
        event.remove(Engine, "before_cursor_execute", hold)
    assert other.is_current()
    other.close()


def test_migration_of_a_file_locks_it_at_every_connection(tmp_path: Path) -> None:
    # Without the lock, one of four processes that switch a new file to WAL at once fails in 44 of 150 tries.
    store = open_store(load_settings({"LEDGERMART_DATA_DIR": str(tmp_path)}))
    was_free: list[bool] = []

    def try_lock(*_: object) -> None:
        with (tmp_path / "control.db.migrate.lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                was_free.append(False)
            else:
                was_free.append(True)

    event.listen(Pool, "connect", try_lock)
    try:
        store.migrate()
    finally:
        event.remove(Pool, "connect", try_lock)
    assert set(was_free) == {False}
    store.close()


@on_both
def test_a_store_of_a_newer_version_is_refused(store: ControlStore) -> None:
    with store.write() as session:
        session.execute(text("update alembic_version set version_num = '9999'"))
    assert not store.is_current()
    with pytest.raises(StoreUnavailable, match="another version"):
        store.migrate()


def test_an_sqlite_store_uses_wal_and_is_for_its_owner_only(tmp_path: Path) -> None:
    settings = load_settings({"LEDGERMART_DATA_DIR": str(tmp_path / "with space % and ?")})
    store = open_store(settings)
    store.migrate()
    path = settings.data_dir / "control.db"
    with store.write() as session:
        assert session.execute(text("pragma journal_mode")).scalar_one() == "wal"
        assert session.execute(text("pragma foreign_keys")).scalar_one() == 1
    assert path.stat().st_mode & 0o777 == 0o600
    store.close()


@on_both
def test_block_that_raises_stores_nothing(store: ControlStore) -> None:
    def fail_midway() -> None:
        with store.write() as session:
            tenants.create(session, "acme")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_midway()
    with store.read() as session:
        assert session.scalars(select(Tenant)).all() == []
        assert revision.read_revision(session) == 0


def test_process_killed_during_a_transaction_stores_nothing(store: ControlStore, settings: Settings) -> None:
    code = (
        "import sys; from control import tenants\n"
        "from control.settings import load_settings; from control.store import open_store\n"
        "with open_store(load_settings({'LEDGERMART_CONTROL_URL': sys.argv[1]})).write() as session:\n"
        "    tenants.create(session, 'acme'); print('written', flush=True); sys.stdin.read()"
    )
    process = run_python(code, settings.control_url)
    assert said(process) == "written\n"
    process.kill()
    process.communicate()
    with store.read() as session:
        assert session.scalars(select(Tenant)).all() == []
    with store.write() as session:
        tenants.create(session, "acme")
    with store.read() as session:
        assert [tenant.name for tenant in session.scalars(select(Tenant))] == ["acme"]


@on_both
def test_a_read_cannot_write(world: World) -> None:
    for _ in range(2):
        with pytest.raises(Exception, match=r"read-?only"), world.store.read() as session:
            session.execute(text("update control_state set revision = 9"))
    with world.store.write() as session:
        tenants.create(session, "third")
    with world.store.read() as session:
        assert revision.read_revision(session) == 3


@on_both
def test_a_read_sees_one_state_while_others_write(world: World) -> None:
    with world.store.read() as session:
        before = revision.read_revision(session)
        with world.store.write() as writer:
            tenants.create(writer, "third")
        assert revision.read_revision(session) == before
        assert "third" not in session.scalars(select(Tenant.name)).all()
    with world.store.read() as session:
        assert revision.read_revision(session) == before + 1


@on_both
def test_concurrent_writers_lose_no_update(world: World) -> None:
    with world.store.read() as session:
        before = revision.read_revision(session)

    def create() -> None:
        with world.store.write() as session:
            tenants.create(session, "second")

    with world.store.write() as session:
        tenants.create(session, "first")
        second = start_waiting(world.settings, create)
    second.result()
    with world.store.read() as session:
        assert revision.read_revision(session) == before + 2


def test_unreachable_store_raises_within_the_time_limit() -> None:
    store = open_store(load_settings({"LEDGERMART_CONTROL_URL": "postgresql://nobody:secret@127.0.0.1:1/none"}))
    for call in (store.is_current, store.migrate):
        with pytest.raises(StoreUnavailable) as caught:
            call()
        assert "secret" not in caught.value.detail
    with pytest.raises(StoreUnavailable), store.read() as session:
        session.execute(select(Tenant))
    store.close()


@on_both
def test_a_writer_that_waits_too_long_gets_store_unavailable(store: ControlStore, settings: Settings) -> None:
    second = open_store(settings, wait_seconds=1)
    with store.write() as session:
        tenants.create(session, "acme")
        started = time.monotonic()
        with pytest.raises(StoreUnavailable), second.write() as other:
            tenants.create(other, "other")
        assert time.monotonic() - started > 0.5
    second.close()


@on_both
def test_store_exists_from_its_first_migration_on(empty_store: ControlStore) -> None:
    assert not empty_store.exists()
    empty_store.migrate()
    assert empty_store.exists()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "control.db"


@pytest.fixture
def open_file(tmp_path: Path) -> Iterator[ControlStore]:
    """A store on an SQLite file, with a tenant and an open connection."""
    store = open_store(load_settings({"LEDGERMART_DATA_DIR": str(tmp_path)}))
    store.migrate()
    with store.write() as session:
        tenants.create(session, "acme")
    yield store
    store.close()


def test_a_deleted_file_is_still_read_and_no_longer_written(open_file: ControlStore, file: Path) -> None:
    kept = file.with_name("kept.db")
    file.rename(kept)
    with open_file.read() as session:
        assert tenants.find_by_name(session, "acme") is not None
    with (
        pytest.raises(StoreLost, match=r"control\.db is missing; restore a backup"),
        open_file.write() as session,
    ):
        tenants.create(session, "lost")
    # A replacement file is used at once.
    shutil.copy(kept, file)
    with open_file.write() as session:
        tenants.create(session, "later")
    with (
        closing(open_store(load_settings({"LEDGERMART_DATA_DIR": str(file.parent)}))) as other,
        other.read() as session,
    ):
        assert tenants.find_by_name(session, "later") is not None
        assert tenants.find_by_name(session, "lost") is None


def _grow(store: ControlStore, file: Path) -> None:
    """Add pages outside the store's tables, so that damage in the second half leaves the store readable."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("create table later as select zeroblob(10000000) as pages")
        connection.commit()
        connection.execute("pragma wal_checkpoint(truncate)")
    with store.write() as session:
        tenants.create(session, "before")


def test_file_truncated_while_open_is_not_written(open_file: ControlStore, file: Path) -> None:
    """SQLite would write: it takes the database's length from the log."""
    _grow(open_file, file)
    kept = shutil.copy(file, file.with_name("kept.db"))
    cut(file)
    with pytest.raises(StoreLost, match=r"is damaged \(it had \d+ bytes"), open_file.write() as session:
        tenants.create(session, "lost")
    Path(kept).rename(file)
    with open_file.write() as session:
        tenants.create(session, "later")


def test_a_file_that_a_reader_finds_damaged_is_not_written(open_file: ControlStore, file: Path) -> None:
    _grow(open_file, file)
    overwritten(file)
    with pytest.raises(StoreLost, match="is damaged"), open_file.read() as session:
        session.execute(text("select length(pages || '') from later"))
    with pytest.raises(StoreLost, match=r"is damaged \(.+\); restore a backup"), open_file.write() as session:
        tenants.create(session, "lost")


@pytest.mark.parametrize("damage", [cut, garbage])
def test_a_damaged_file_is_named(open_file: ControlStore, file: Path, damage: Damage) -> None:
    # The last connection writes the log into the file.
    open_file.close()
    damage(file)
    for use in (open_file.exists, open_file.migrate, open_file.is_current):
        with pytest.raises(StoreLost, match=r"control\.db is damaged \(.+\); restore a backup"):
            use()


@on_postgres
def test_a_restarted_server_is_reconnected(store: ControlStore, settings: Settings) -> None:
    """A session that is in use fails as unavailable; the next one finds the server."""

    def write_meanwhile() -> None:
        with store.write() as session:
            tenants.create(session, "lost")
            session.flush()
            _end_sessions(settings.control_url)

    with pytest.raises(StoreUnavailable):
        write_meanwhile()
    with store.write() as session:
        tenants.create(session, "kept")
    _end_sessions(settings.control_url)
    with store.read() as session:
        assert tenants.find_by_name(session, "kept") is not None
        assert tenants.find_by_name(session, "lost") is None


def _end_sessions(url: str) -> None:
    """End all other sessions of the database, as a restart of the server does."""
    engine = plain_engine(url)
    with engine.connect() as connection:
        connection.execute(
            text(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where datname = current_database() and pid != pg_backend_pid() and application_name != :spared"
            ),
            {"spared": RESETTING},
        )
    engine.dispose()


@on_both
def test_write_that_must_not_wait_fails_at_once(store: ControlStore, settings: Settings) -> None:
    # Without the refusal, it would wait for an hour.
    second = open_store(settings, wait_seconds=3600)
    with store.write() as session:
        tenants.create(session, "acme")
    with store.write() as session:
        session.execute(update(Tenant).values(name="first"))
        with pytest.raises(StoreUnavailable), second.write_at_once() as other:
            other.execute(update(Tenant).values(name="second"))
    with second.write_at_once() as session:
        session.execute(update(Tenant).values(name="third"))
    with second.read() as session:
        assert session.scalars(select(Tenant.name)).all() == ["third"]
    second.close()
