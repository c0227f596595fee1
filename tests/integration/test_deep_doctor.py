"""`ledgermart doctor --deep`: each damage, wrong mode and broken backup is found, and nothing is written."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.checks import Check
from cli.deep import examine_files, examine_past
from control.settings import Settings, load_settings
from control.store import open_store
from pipelines.deliver.backup import make_backup
from tests.integration.test_backup import SILENT, contents, flip
from warehouse.lock import writer_lock
from warehouse.versions import current_publication


@pytest.fixture
def settings(release_data: Path, tmp_path: Path) -> Settings:
    return load_settings({"LEDGERMART_DATA_DIR": str(shutil.copytree(release_data, tmp_path / "data"))})


def wrong(settings: Settings, backup: Path | None = None) -> list[Check]:
    """Run the checks; return those that need a fix, after checking that the folder is unchanged."""
    before = contents(settings.data_dir)
    found = examine_files(settings, backup, lambda _: None)
    assert contents(settings.data_dir) == before
    return [check for check in found if check.verdict == "wrong"]


def test_a_whole_folder_and_its_backup_have_no_findings(settings: Settings, tmp_path: Path) -> None:
    made = make_backup(settings, tmp_path / "backup", SILENT)
    made.folder.chmod(0o700)
    for path in made.folder.iterdir():
        path.chmod(0o600)
    assert wrong(settings, made.folder) == []
    (backup,) = [check for check in examine_files(settings, made.folder, lambda _: None) if check.check == "backup"]
    assert backup.detail.startswith(f"{made.folder} is whole: ")
    (made.folder / "control.db").chmod(0o644)
    assert "is open to other users; close it with" in wrong(settings, made.folder)[0].detail
    flip(made.folder / "warehouse.duckdb")
    (found,) = wrong(settings, made.folder)
    assert found.detail.startswith(f"{made.folder / 'warehouse.duckdb'} is damaged: it is not the file that")


@pytest.mark.proof("a flipped bit in a published file is found by doctor")
@pytest.mark.parametrize(
    ("find", "fix"),
    [
        (lambda settings: settings.warehouse_path, "restore a backup"),
        (lambda settings: settings.marts_path, "`ledgermart cycle --rebuild`"),
        (lambda settings: settings.serving_dir / newest(settings), "the next cycle publishes it again"),
    ],
)
def test_one_flipped_bit_in_the_rows_of_a_file_is_found(
    settings: Settings, find: Callable[[Settings], Path], fix: str
) -> None:
    path = find(settings)
    size = path.stat().st_size
    # Blocks that are not in use may hold anything, so look for the first one in the middle that is.
    for at in range(size // 2, size, 262_144):
        flip(path, at / size)
        if found := wrong(settings):
            break
        flip(path, at / size)
    details = [check.detail for check in found if check.check == "files"]
    assert len(details) == 1
    assert details[0].startswith(f"{path} is damaged (")
    assert fix in details[0]


def newest(settings: Settings) -> str:
    publication = current_publication(settings.serving_dir)
    assert publication is not None
    return publication.file


def test_a_damaged_page_of_the_control_store_and_of_the_records_is_found(settings: Settings) -> None:
    settings.dagster_dir.mkdir(mode=0o700)
    control = settings.data_dir / "control.db"
    records = settings.dagster_dir / "runs.db"
    shutil.copy(control, records)
    for path in (control, records):
        # The kind of a page is its first byte.
        flip(path, path.stat().st_size // 8192 * 4096 / path.stat().st_size)
    found = wrong(settings)
    assert {check.check for check in found} == {"control store's file", "records of runs"}
    assert all(" is damaged (" in check.detail for check in found)
    assert "restore a backup" in found[0].detail
    assert "it begins new records, and no data is lost" in found[-1].detail


def test_a_lost_pointer_is_found(settings: Settings) -> None:
    (settings.serving_dir / "current.json").write_text("{")
    (found,) = wrong(settings)
    assert "current.json cannot be read; the next cycle publishes a version in a new epoch" in found.detail


def test_wrong_modes_and_owners_are_found(settings: Settings) -> None:
    shutil.copytree(settings.serving_dir, settings.data_dir / "serving.2026-11-25T000000Z.aside")
    settings.warehouse_path.chmod(0o644)
    (settings.data_dir / "control.db").chmod(0o400)
    found = [check.detail for check in wrong(settings)]
    assert found == [
        f"{settings.warehouse_path} is open to other users; close them with `chmod go=`",
        f"{settings.data_dir / 'control.db'} is closed to the service itself; open them with `chmod u=rw`, folders "
        "with `chmod u=rwx`",
    ]
    settings.warehouse_path.chmod(0o600)
    (settings.data_dir / "control.db").chmod(0o600)
    if os.geteuid() == 0:
        os.chown(settings.marts_path, 12345, -1)
        assert "marts_build.duckdb is of another user; run commands as the service's user" in wrong(settings)[0].detail


def test_the_check_names_the_writer_that_it_waits_for(settings: Settings) -> None:
    held = writer_lock(settings.lock_path, "a cycle", 0)
    held.__enter__()
    waits: list[str] = []

    def on_wait(holder: str) -> None:
        waits.append(holder)
        held.__exit__(None, None, None)

    examine_files(settings, None, on_wait)
    assert len(waits) == 1
    assert waits[0].endswith("Z)")
    assert f"process {os.getpid()} (a cycle" in waits[0]


def test_data_that_would_be_lost_with_the_warehouse_is_named(settings: Settings) -> None:
    assert "from another release" in examine_past(settings, ()).detail
    store = open_store(settings)
    store.migrate()
    store.close()
    found = examine_past(settings, ["local"])
    assert found.verdict == "note"
    assert found.detail == (
        "collected so far: 4 tokens and wallets, 1 price pair; tracking windows are collected again from the nodes; no "
        "archive on local: past balances and attestations there are lost for good; `ledgermart backup DIR` keeps all "
        "of it"
    )
