"""`ledgermart backup` and `restore`: complete copies despite a writer, refusals, kills, and a new epoch."""

import hashlib
import json
import os
import shutil
import signal
import threading
import uuid
from collections.abc import Callable
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from control import serving, tenants
from control.backups import find_faults, load_dump
from control.errors import StoreLost, StoreUnavailable
from control.settings import Settings, load_settings
from control.store import open_store
from pipelines.deliver import backup as backups
from pipelines.deliver import restore as restores
from pipelines.deliver.backup import Backup, BackupError, make_backup, read_backup
from pipelines.deliver.restore import Restored, check_finished, restore
from tests.chain.process import free_port
from tests.damages import overwritten
from tests.integration.warm_processes import run_forked
from tests.unit.control.postgres import new_database
from warehouse import copies
from warehouse.copies import Listener
from warehouse.damage import DamagedFileError
from warehouse.lock import WriterBusyError, is_locked, writer_lock
from warehouse.opening import connect

SILENT = Listener(lambda _: None, lambda _: None, lambda _: None)
Contents = dict[str, bytes]


@pytest.fixture
def settings(release_data: Path, tmp_path: Path) -> Settings:
    return load_settings({"LEDGERMART_DATA_DIR": str(shutil.copytree(release_data, tmp_path / "data"))})


@pytest.fixture
def fresh(tmp_path: Path) -> Settings:
    """Settings of an empty data folder."""
    (tmp_path / "fresh" / "serving").mkdir(parents=True)
    return load_settings({"LEDGERMART_DATA_DIR": str(tmp_path / "fresh")})


@pytest.fixture
def made(settings: Settings, tmp_path: Path) -> Backup:
    return make_backup(settings, tmp_path / "backup", SILENT)


def contents(folder: Path) -> Contents:
    """All files below a folder, but for locks."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".lock"
    }


def flip(path: Path, at: float = 0.5) -> None:
    """Change one bit at a part of a file."""
    path.chmod(0o600)
    with path.open("r+b") as file:
        file.seek(int(path.stat().st_size * at))
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))


def test_a_backup_waits_for_the_writer_and_holds_its_rows(settings: Settings, tmp_path: Path) -> None:
    waits = threading.Event()
    made: list[Backup] = []
    listener = Listener(lambda _: waits.set(), lambda _: None, lambda _: None)
    thread = threading.Thread(target=lambda: made.append(make_backup(settings, tmp_path / "backup", listener)))
    with writer_lock(settings.lock_path, "a cycle", 0):
        thread.start()
        assert waits.wait(60)
        for path in (settings.warehouse_path, settings.marts_path):
            with closing(connect(path)) as connection:
                connection.execute("create table main.written as select 7 as i")
        assert not (tmp_path / "backup").exists()
    thread.join()
    for name in ("warehouse.duckdb", "marts_build.duckdb"):
        with closing(connect(tmp_path / "backup" / name, read_only=True)) as connection:
            assert connection.execute("select i from main.written").fetchall() == [(7,)]
    assert {file.name for file in made[0].files} == {"control.db", "warehouse.duckdb", "marts_build.duckdb"}


def test_the_lock_is_free_before_the_files_are_hashed(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashes = []

    def sha256(begin: Callable[[], Any] = hashlib.sha256) -> Any:
        with writer_lock(settings.lock_path, "a cycle", 0):
            hashes.append(begin())
        return hashes[-1]

    monkeypatch.setattr(hashlib, "sha256", sha256)
    made = make_backup(settings, tmp_path / "backup", SILENT)
    assert [file.sha256 for file in made.files] == [digest.hexdigest() for digest in hashes]


def test_the_manifest_has_every_files_hash_and_only_the_owner_may_read(made: Backup) -> None:
    manifest = json.loads((made.folder / "manifest.json").read_text())
    expected = {
        path.name: (path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in made.folder.iterdir()
        if path.name != "manifest.json"
    }
    assert {file["name"]: (file["bytes"], file["sha256"]) for file in manifest["files"]} == expected
    assert (manifest["version"], len(manifest["epoch"])) == (version("ledgermart"), 32)
    assert read_backup(made.folder) == made
    assert find_faults(made.folder / "control.db") == []


def test_a_second_backup_replaces_the_first_and_anything_else_stays(settings: Settings, tmp_path: Path) -> None:
    first = make_backup(settings, tmp_path / "backup", SILENT)
    with closing(connect(settings.warehouse_path)) as connection:
        connection.execute("create table main.later as select 1 as i")
    second = make_backup(settings, tmp_path / "backup", SILENT)
    assert second.files[0].name == "control.db"
    assert second.files[1:] != first.files[1:]
    assert [path.name for path in tmp_path.iterdir() if "backup" in path.name] == ["backup"]
    other = tmp_path / "other"
    other.mkdir()
    (other / "letter.txt").write_text("mine")
    with pytest.raises(BackupError, match="other holds other files, and no earlier backup; name an empty"):
        make_backup(settings, other, SILENT)
    with pytest.raises(BackupError, match="lies in the data folder"):
        make_backup(settings, settings.data_dir / "backup", SILENT)
    assert contents(other) == {"letter.txt": b"mine"}


@pytest.mark.parametrize("store", ["control", "warehouse", "marts"])
def test_a_damaged_store_does_not_replace_a_good_backup(settings: Settings, made: Backup, store: str) -> None:
    before = contents(made.folder)
    damaged = {
        "control": settings.data_dir / "control.db",
        "warehouse": settings.warehouse_path,
        "marts": settings.marts_path,
    }[store]
    overwritten(damaged)
    with pytest.raises(StoreLost if store == "control" else DamagedFileError, match=f"{damaged} is damaged"):
        make_backup(settings, made.folder, SILENT)
    assert contents(made.folder) == before


def test_a_disk_that_is_full_is_named_and_the_earlier_backup_stays(
    settings: Settings, made: Backup, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(made.folder)

    def full(_: object, folder: Path) -> None:
        raise OSError(28, "No space left on device", str(folder))

    monkeypatch.setattr(backups, "copy_store", full)
    with pytest.raises(BackupError, match=f"{made.folder} cannot be written: No space left on device .*; free space"):
        make_backup(settings, made.folder, SILENT)
    assert contents(made.folder) == before


def run_until_killed(command: str, folder: Path, module: str, name: str, count: int) -> None:
    """Run a command; kill this process before one more than `count` calls of a function."""
    target: Any = {"backup": backups, "restore": restores, "path": Path}[module]
    of, calls = getattr(target, name), []

    def kill(*arguments: Any, **options: Any) -> Any:
        if len(calls) == count:
            os.kill(os.getpid(), signal.SIGKILL)
        calls.append(0)
        return of(*arguments, **options)

    setattr(target, name, kill)
    if command == "backup":
        make_backup(load_settings(), folder, SILENT)
    else:
        restore(load_settings(), folder, SILENT, set_aside=True)


def killed(settings: Settings, command: str, folder: Path, module: str, name: str, count: int) -> None:
    """Run a command in a separate process that kills itself."""
    variables = os.environ | {"LEDGERMART_DATA_DIR": str(settings.data_dir)}
    done = run_forked(run_until_killed, (command, folder, module, name, count), variables)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize(
    ("module", "name", "count"),
    [
        ("backup", "_write_manifest", 0),
        pytest.param("path", "rename", 1, marks=pytest.mark.release),
        ("path", "rename", 2),
    ],
)
def test_a_killed_backup_is_incomplete_and_the_earlier_one_stays(
    settings: Settings, made: Backup, fresh: Settings, module: str, name: str, count: int
) -> None:
    before = contents(made.folder)
    killed(settings, "backup", made.folder, module, name, count)
    partial, former = (made.folder.with_name(f".{made.folder.name}.{kind}") for kind in ("partial", "former"))
    if count < 2:
        assert contents(made.folder) == before
    else:
        with pytest.raises(BackupError, match=f"interrupted, and the one before it is in {former}"):
            read_backup(made.folder)
        assert contents(former) == before
        restore(fresh, former, SILENT, set_aside=False)
    if name == "_write_manifest":
        with pytest.raises(BackupError, match=r"is no backup: it holds no manifest\.json"):
            restore(fresh, partial, SILENT, set_aside=False)
    make_backup(settings, made.folder, SILENT)
    assert not partial.exists()
    assert not former.exists()


@pytest.mark.proof("a backup is restored whole")
def test_a_backup_is_restored_into_an_empty_folder(made: Backup, fresh: Settings) -> None:
    done = restore(fresh, made.folder, SILENT, set_aside=False)
    expected = {name: content for name, content in contents(made.folder).items() if name != "manifest.json"}
    assert contents(fresh.data_dir) == expected
    assert (done.aside, done.was_interrupted) == ((), False)
    check_finished(fresh)


@pytest.mark.proof("a damaged backup is refused")
@pytest.mark.parametrize("name", ["control.db", "warehouse.duckdb", "marts_build.duckdb", "manifest.json"])
def test_a_flipped_bit_is_refused(made: Backup, fresh: Settings, name: str) -> None:
    flip(made.folder / name)
    with pytest.raises(BackupError, match=f"{made.folder / name} (is damaged|does not name)"):
        restore(fresh, made.folder, SILENT, set_aside=False)
    assert contents(fresh.data_dir) == {}


def test_restore_refuses_a_missing_file_a_newer_release_or_another_database(made: Backup, fresh: Settings) -> None:
    manifest = made.folder / "manifest.json"
    text = manifest.read_text()
    manifest.write_text(text.replace(f'"{version("ledgermart")}"', '"99.0"'))
    with pytest.raises(BackupError, match=r"is of Ledgermart 99\.0, and .* is installed; install 99\.0 or newer"):
        restore(fresh, made.folder, SILENT, set_aside=False)
    manifest.write_text(text.replace('"name": "control.db"', '"name": "../control.db"'))
    with pytest.raises(BackupError, match=r"manifest\.json is damaged"):
        restore(fresh, made.folder, SILENT, set_aside=False)
    manifest.write_text(text)
    url = "postgresql://127.0.0.1:9/nothing"
    on_postgres = load_settings({"LEDGERMART_DATA_DIR": str(fresh.data_dir), "LEDGERMART_CONTROL_URL": url})
    with pytest.raises(BackupError, match="is an SQLite file, and LEDGERMART_CONTROL_URL names a PostgreSQL database"):
        restore(on_postgres, made.folder, SILENT, set_aside=False)
    (made.folder / "marts_build.duckdb").unlink()
    with pytest.raises(BackupError, match=r"marts_build\.duckdb is missing"):
        restore(fresh, made.folder, SILENT, set_aside=False)
    assert contents(fresh.data_dir) == {}


def described(made: Backup, **contents: bytes) -> None:
    """Replace files of a backup, or add them, and describe them truthfully in the manifest."""
    path = made.folder / "manifest.json"
    manifest = json.loads(path.read_text())
    files = {file["name"]: file for file in manifest["files"]}
    for name, content in contents.items():
        (made.folder / name).unlink(missing_ok=True)
        (made.folder / name).write_bytes(content)
        files[name] = {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    path.write_text(json.dumps({**manifest, "files": list(files.values())}))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: path.symlink_to("/dev/zero"), "is no plain file"),
        (lambda path: path.symlink_to(path.with_name("marts_build.duckdb")), "is no plain file"),
        (os.mkfifo, "is no plain file"),
        (os.mkdir, "is no plain file"),
        (lambda path: (path.touch(), os.truncate(path, 1 << 40)), "is damaged"),
    ],
    ids=["device", "link", "pipe", "folder", "sparse"],
)
def test_restore_reads_only_plain_files_of_the_size_in_the_manifest(
    made: Backup, fresh: Settings, make: Callable[[Path], object], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restores, "copy_pairs", lambda *_: pytest.fail("the files are copied"))
    path = made.folder / "warehouse.duckdb"
    path.unlink()
    make(path)
    with pytest.raises(BackupError, match=f"{path} {reason}.*; use another backup"):
        restore(fresh, made.folder, SILENT, set_aside=False)
    assert contents(fresh.data_dir) == {}


def test_manifest_that_is_a_pipe_is_refused(made: Backup, fresh: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backups, "read_json", lambda *_: pytest.fail("the manifest is read"))
    (made.folder / "manifest.json").unlink()
    os.mkfifo(made.folder / "manifest.json")
    with pytest.raises(BackupError, match=r"manifest\.json is no plain file; use another backup"):
        restore(fresh, made.folder, SILENT, set_aside=False)


def test_bytes_that_a_file_gains_during_the_copy_are_not_copied(
    made: Backup, fresh: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "reflink", lambda *_: False)

    def grow(_: int) -> None:
        with (made.folder / "warehouse.duckdb").open("ab") as file:
            file.write(b"x" * 1000)

    restore(fresh, made.folder, Listener(lambda _: None, grow, lambda _: None), set_aside=False)
    sizes = {file.name: file.bytes for file in made.files}
    assert fresh.warehouse_path.stat().st_size == sizes["warehouse.duckdb"]


def damaged_log(made: Backup) -> bytes:
    """Return a log that DuckDB wrote for the warehouse of a backup, with a changed bit."""
    warehouse = shutil.copy(made.folder / "warehouse.duckdb", made.folder.with_name("logged.duckdb"))
    with closing(connect(warehouse)) as connection:
        connection.execute("create table main.logged as select 7 as i")
        log = bytearray(warehouse.with_name("logged.duckdb.wal").read_bytes())
    log[log.index(b"logged")] ^= 1
    return bytes(log)


@pytest.mark.parametrize("name", ["control.db", "warehouse.duckdb", "warehouse.duckdb.wal", "marts_build.duckdb"])
def test_stores_that_do_not_open_are_refused_although_their_hashes_agree(
    made: Backup, fresh: Settings, name: str
) -> None:
    described(made, **{name: damaged_log(made) if name.endswith(".wal") else b"x"})
    opened = name.removesuffix(".wal")
    with pytest.raises(BackupError, match=f"{made.folder / opened} cannot be opened .*; use another backup"):
        restore(fresh, made.folder, SILENT, set_aside=False)
    assert {path.name for path in fresh.data_dir.iterdir()} == {"serving", "up.lock", "warehouse.lock"}
    check_finished(fresh)


@pytest.mark.parametrize("lock", ["up.lock", "warehouse.lock"])
def test_restore_is_refused_while_the_service_or_a_cycle_runs(made: Backup, fresh: Settings, lock: str) -> None:
    with writer_lock(fresh.data_dir / lock, "ledgermart up", 0), pytest.raises(WriterBusyError):
        restore(fresh, made.folder, SILENT, set_aside=False)
    assert contents(fresh.data_dir) == {}
    assert not is_locked(fresh.data_dir / lock)


def test_present_data_is_renamed_only_with_set_aside_and_never_deleted(settings: Settings, made: Backup) -> None:
    (settings.data_dir / "logs").mkdir()
    (settings.data_dir / "logs" / "api.log").write_text("log")
    with closing(connect(settings.warehouse_path)) as connection:
        connection.execute("create table main.later as select 1 as i")
    before = contents(settings.data_dir)
    with pytest.raises(BackupError, match=r"holds data \(control\.db, warehouse\.duckdb, .*\); --set-aside renames it"):
        restore(settings, made.folder, SILENT, set_aside=False)
    assert contents(settings.data_dir) == before
    done = restore(settings, made.folder, SILENT, set_aside=True)
    check_switched(settings, made, before, done)
    assert (settings.data_dir / "logs" / "api.log").read_text() == "log"


def check_switched(settings: Settings, made: Backup, before: Contents, done: Restored) -> None:
    """Compare a data folder with the files of a backup, and the former data with its earlier content."""
    after = contents(settings.data_dir)
    for file in made.files:
        assert hashlib.sha256(after.pop(file.name)).hexdigest() == file.sha256
    kept = sorted(content for name, content in before.items())
    assert sorted(after.values()) == kept
    assert not (settings.data_dir / "serving").exists()
    assert {path.name.split(".")[0] for path in done.aside} == {"control", "warehouse", "marts_build", "serving"}


@pytest.mark.ci
@pytest.mark.parametrize(
    ("module", "name", "count", "is_new"),
    [
        ("restore", "_write_journal", 0, False),
        ("path", "rename", 2, True),
        ("path", "replace", 2, True),
        pytest.param("restore", "check_files", 0, False, marks=pytest.mark.release),
        pytest.param("restore", "_switch", 0, True, marks=pytest.mark.release),
        pytest.param("path", "replace", 1, True, marks=pytest.mark.release),
    ],
)
def test_a_killed_restore_leaves_the_old_or_the_new_state(
    settings: Settings, made: Backup, module: str, name: str, count: int, is_new: bool
) -> None:
    with closing(connect(settings.warehouse_path)) as connection:
        connection.execute("create table main.later as select 1 as i")
    before = contents(settings.data_dir)
    killed(settings, "restore", made.folder, module, name, count)
    if not is_new:
        check_finished(settings)
        assert {name: content for name, content in contents(settings.data_dir).items() if name in before} == before
    else:
        with pytest.raises(BackupError, match=f"interrupted; run `ledgermart restore {made.folder}` to complete it"):
            check_finished(settings)
        with pytest.raises(BackupError, match="interrupted"):
            restore(settings, made.folder.with_name("other"), SILENT, set_aside=True)
    done = restore(settings, made.folder, SILENT, set_aside=True)
    assert done.was_interrupted == is_new
    check_switched(settings, made, before, done)
    check_finished(settings)


def test_a_store_on_postgres_is_dumped_and_restored_into_an_empty_database(
    settings: Settings, fresh: Settings, postgres_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as databases:

        def on_postgres(one: Settings) -> Settings:
            url = databases.enter_context(new_database(postgres_server, f"t{uuid.uuid4().hex}"))
            return load_settings({"LEDGERMART_DATA_DIR": str(one.data_dir), "LEDGERMART_CONTROL_URL": url})

        source, target = on_postgres(settings), on_postgres(fresh)
        store = open_store(source)
        store.migrate()
        with store.write() as session:
            tenants.create(session, "acme")
            at = datetime(2026, 3, 1, tzinfo=UTC)
            serving.publish(session, 0, None, serving.Served(1, "shard-0/a", 10, "0" * 64, "{}", at))
        store.close()
        made = make_backup(source, tmp_path / "backup", SILENT)
        assert [file.name for file in made.files] == ["control.dump", "warehouse.duckdb", "marts_build.duckdb"]
        with monkeypatch.context() as patch:
            # pg_restore fails, so nothing may be changed.
            patch.setattr(restores, "load_dump", lambda _, dump: load_dump(settings_without_server(), dump))
            with pytest.raises(StoreUnavailable, match=r"pg_restore failed \(LEDGERMART_CONTROL_URL\): .*refused"):
                restore(target, made.folder, SILENT, set_aside=False)
            assert contents(target.data_dir) == {}
        restore(target, made.folder, SILENT, set_aside=False)
        assert set(contents(target.data_dir)) == {"warehouse.duckdb", "marts_build.duckdb"}
        restored = open_store(target)
        with restored.read() as session:
            assert tenants.get_by_name(session, "acme").name == "acme"
            # So the next publication begins a new epoch.
            assert serving.read_shards(session) == {}
        restored.close()
        with pytest.raises(StoreUnavailable, match="holds a control store; name an empty database"):
            restore(target, made.folder, SILENT, set_aside=True)
        monkeypatch.setenv("PATH", "/nowhere")
        with pytest.raises(
            StoreUnavailable, match=r"pg_dump is not installed, .* install the package postgresql-client"
        ):
            make_backup(source, made.folder, SILENT)
    assert read_backup(made.folder) == made


def settings_without_server() -> Settings:
    return load_settings({"LEDGERMART_CONTROL_URL": f"postgresql://127.0.0.1:{free_port()}/nothing"})
