"""Access to the data folder, tested by processes of another user."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.warm_processes import console_command, run_forked
from warehouse.versions import publish

_COMMAND = Path(sys.executable).with_name("ledgermart")
# The user needs no entry in the user database: kernel and service only compare numbers.
_GROUP, _OTHER_USER = "daemon", "65534"

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="acts as another user")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A data folder in a parent that any user may enter; pytest's own folders are closed."""
    parent = Path(tempfile.mkdtemp(dir="/tmp"))
    parent.chmod(0o755)
    yield parent / "data"
    shutil.rmtree(parent)


def _command_of_an_open_user(*arguments: str) -> None:
    os.umask(0o022)
    console_command(*arguments)


def status(folder: Path, group: str | None = None) -> str:
    """Run a command of the service; return its standard error."""
    done = run_forked(
        _command_of_an_open_user,
        ("key", "list", "--tenant", "none", "--json"),
        {**os.environ, "LEDGERMART_DATA_DIR": str(folder), "LEDGERMART_DATA_GROUP": group or ""},
    )
    assert done.stdout == ""
    return done.stderr


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def fill(folder: Path, umask: int = 0o022) -> None:
    """Create the files of an earlier release, all of them readable."""
    before = os.umask(umask)
    try:
        for name in ("dagster/runs", "logs", "serving"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        for name in ("warehouse.duckdb", "logs/up.log", "dagster/runs/1.db", "serving/current.json"):
            (folder / name).write_text("secret")
        (folder / "serving" / "marts-000000000001.duckdb").write_text("rows")
        (folder / "serving" / "marts-000000000001.duckdb").chmod(0o444)
        (folder.parent / "outside").write_text("mine")
        (folder / "link").symlink_to(folder.parent / "outside")
    finally:
        os.umask(before)


def reads(path: Path, group: str | None) -> bool:
    """Return whether another user, or a member of the group, can read a file."""
    member = ["--groups", str(grp_id(group))] if group else ["--clear-groups"]
    done = subprocess.run(
        ["setpriv", "--reuid", _OTHER_USER, "--regid", _OTHER_USER, *member, "--", "cat", str(path)],
        capture_output=True,
    )
    return done.returncode == 0


def grp_id(name: str) -> int:
    import grp

    return grp.getgrnam(name).gr_gid


def test_a_new_folder_is_closed(folder: Path) -> None:
    assert "open to others" not in status(folder)
    assert {mode_of(path) for path in (folder, folder / "serving", folder / "dagster")} == {0o700}


def test_an_open_folder_is_closed_once_with_a_message(folder: Path) -> None:
    fill(folder)
    assert mode_of(folder) == 0o755
    assert f"{folder} was open to others (755); now only its owner can read it" in status(folder)
    paths = [path for path in folder.rglob("*") if not path.is_symlink()]
    assert {mode_of(path) for path in paths if path.is_dir()} == {0o700}
    assert {mode_of(path) for path in paths if path.is_file()} == {0o600, 0o400}
    assert mode_of(folder / "serving" / "marts-000000000001.duckdb") == 0o400
    assert mode_of(folder.parent / "outside") == 0o644
    assert "open to others" not in status(folder)


@pytest.mark.proof("another user of the machine reads nothing")
@needs_root
def test_another_user_reads_nothing(folder: Path) -> None:
    fill(folder)
    published = folder / "serving" / "marts-000000000001.duckdb"
    assert reads(published, None)
    status(folder)
    for path in (published, folder / "warehouse.duckdb", folder / "logs" / "up.log"):
        assert not reads(path, None)
        assert not reads(path, _GROUP)


@needs_root
def test_the_group_reads_only_published_files(folder: Path) -> None:
    fill(folder)
    status(folder, _GROUP)
    assert (mode_of(folder), mode_of(folder / "serving")) == (0o710, 0o2750)
    published, pointer = folder / "serving" / "marts-000000000001.duckdb", folder / "serving" / "current.json"
    assert (mode_of(published), mode_of(pointer)) == (0o440, 0o640)
    assert published.stat().st_gid == grp_id(_GROUP)
    assert reads(published, _GROUP)
    assert reads(pointer, _GROUP)
    assert not reads(published, None)
    for name in ("warehouse.duckdb", "logs/up.log", "dagster/runs/1.db"):
        assert not reads(folder / name, _GROUP)
    listed = ["setpriv", "--reuid", _OTHER_USER, "--regid", _OTHER_USER, "--groups", str(grp_id(_GROUP)), "--", "ls"]
    assert subprocess.run([*listed, str(folder / "serving")], capture_output=True).returncode == 0
    assert subprocess.run([*listed, str(folder)], capture_output=True).returncode != 0
    # Without the variable the folder is closed again.
    assert "open to others" not in status(folder)
    assert not reads(published, _GROUP)
    assert (mode_of(folder), mode_of(folder / "serving"), mode_of(published)) == (0o700, 0o700, 0o400)


@needs_root
@pytest.mark.parametrize("group", [None, _GROUP])
def test_later_publications_have_the_same_permissions(folder: Path, group: str | None) -> None:
    status(folder, group)
    marts, serving = folder / "marts_build.duckdb", folder / "serving"
    for batch in (1, 2):
        publish(marts, serving, batch)
    names = ("marts-000000000001.duckdb", "marts-000000000002.duckdb", "current.duckdb", "current.json")
    assert [reads(serving / name, _GROUP) for name in names] == [group is not None] * 4
    assert not any(reads(serving / name, None) for name in names)
    expected = 0o440 if group else 0o400
    assert [mode_of(serving / name) for name in names] == [expected] * 3 + [0o640 if group else 0o600]


@pytest.mark.parametrize("name", ["no-such-group", "-1", "root,daemon"])
def test_a_missing_group_is_named_in_the_message(folder: Path, name: str) -> None:
    assert f"LEDGERMART_DATA_GROUP is {name!r}; set it to the name of a group of this machine" in status(folder, name)


@needs_root
def test_a_group_without_the_service_user_is_refused(folder: Path) -> None:
    folder.parent.chmod(0o777)
    done = subprocess.run(
        ["setpriv", "--reuid", _OTHER_USER, "--regid", _OTHER_USER, "--clear-groups", "--", _COMMAND, "status"],
        env={**os.environ, "LEDGERMART_DATA_DIR": str(folder), "LEDGERMART_DATA_GROUP": _GROUP, "HOME": "/tmp"},
        capture_output=True,
        text=True,
    )
    if "Permission denied" in done.stderr and "LEDGERMART" not in done.stderr:
        pytest.skip("the other user cannot run the program where it is installed")
    assert done.returncode == 2
    assert "LEDGERMART_DATA_GROUP" in done.stderr
    assert "name a group that the service's user belongs to" in done.stderr
