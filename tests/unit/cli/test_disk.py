"""A full disk is recognised in the errors of every library and reported in one sentence."""

import errno
import shutil
import sqlite3
from collections import namedtuple
from pathlib import Path

import click
import duckdb
import pytest
from click.testing import CliRunner

from cli.disk import full_disk_sentence, is_disk_full, names_full_disk, naming_full_disk
from cli.main import main
from control.errors import StoreUnavailable
from control.settings import Settings, load_settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The settings of commands in this process."""
    for variable in ("DAGSTER_HOME", "LEDGERMART_DAGSTER_DIR", "LEDGERMART_CODE_SERVER_SOCKET"):
        monkeypatch.setenv(variable, "")
    monkeypatch.setenv("LEDGERMART_DATA_DIR", str(tmp_path))
    return load_settings()


def test_full_disk_errors_of_all_libraries_are_recognised_as_cause_too(settings: Settings) -> None:
    for error in (
        OSError(errno.ENOSPC, "No space left on device", "progress.tmp"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        sqlite3.OperationalError("database or disk is full"),
        duckdb.IOException('Could not write all bytes to file "w.duckdb": No space left on device'),
    ):
        assert is_disk_full(error, settings)
        outer = ValueError("a step failed")
        outer.__cause__ = error
        assert is_disk_full(outer, settings)
    for other in (OSError(errno.EACCES, "Permission denied"), ValueError("the tank is full")):
        assert not is_disk_full(other, settings)


def test_broken_disk_is_not_reported_as_full(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not names_full_disk("disk I/O error", settings)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(64_000_000, 64_000_000, 0))
    assert names_full_disk("disk I/O error", settings)


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), StoreUnavailable("database or disk is full")]
)
def test_a_command_on_a_full_disk_ends_with_one_sentence(
    error: Exception, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("cli.status.read_status", fail)
    done = CliRunner().invoke(main, ["status"])
    assert (done.exit_code, done.stderr) == (1, f"Error: {full_disk_sentence(settings.data_dir)}\n")
    assert str(settings.data_dir) in done.stderr


def test_full_disk_of_an_export_names_the_export_folder(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "elsewhere"
    out.mkdir()
    with (
        pytest.raises(click.ClickException, match=f"{out} has .* or name a folder with --out; no stored") as raised,
        naming_full_disk(settings, out, "name a folder with --out"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr("cli.status.read_status", lambda _: _throw(raised.value))
    assert CliRunner().invoke(main, ["status"]).stderr == f"Error: {raised.value.message}\n"


def _throw(error: Exception) -> None:
    raise error
