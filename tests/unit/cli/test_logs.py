"""Logs of child processes: bounded, complete, and without terminal control characters."""

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import pytest

from cli.logs import LogFile, copy_lines
from pipelines.defs.maintenance import purge_logs


def written(folder: Path) -> str:
    """Return the text of a log and its older parts, oldest first."""
    parts = sorted(folder.iterdir(), key=lambda path: path.name, reverse=True)
    return "".join(path.read_text() for path in parts)


def test_a_running_process_loses_no_line_while_its_log_is_rotated(tmp_path: Path) -> None:
    code = "import sys\nfor n in range(2000): print('line', n, file=sys.stdout if n % 2 else sys.stderr, flush=True)"
    command = [sys.executable, "-c", code]
    with (
        LogFile(tmp_path / "api.log", most_bytes=4_000, older_parts=9) as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process,
    ):
        assert process.stdout is not None
        assert sum(1 for _ in copy_lines(process.stdout, log)) == 2000
    assert written(tmp_path) == "".join(f"line {n}\n" for n in range(2000))
    assert len(list(tmp_path.iterdir())) == 5
    assert all(path.stat().st_size <= 4_000 for path in tmp_path.iterdir())
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_the_oldest_part_is_replaced(tmp_path: Path) -> None:
    with LogFile(tmp_path / "api.log", most_bytes=10, older_parts=2) as log:
        for number in range(9):
            log.write(f"line {number}\n")
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {"api.log": "line 8\n", "api.log.1": "line 7\n", "api.log.2": "line 6\n"}


def test_control_characters_are_not_written(tmp_path: Path) -> None:
    with LogFile(tmp_path / "worker.log") as log:
        log.write("\x1b[31mred\x1b[0m a\x00b c\u202ed \x9b1me\tf\rg\u200bh\n")
    assert (tmp_path / "worker.log").read_text() == "red ab cd e\tfgh\n"


def test_full_disk_loses_counted_lines_without_stopping_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_write = os.write
    with LogFile(tmp_path / "api.log") as log:
        log.write("before\n")
        # A disk with 2 bytes of free space.
        monkeypatch.setattr(os, "write", lambda file, data: real_write(file, data[:2]))
        log.write("cut\n")

        def refuse(file: int, data: bytes) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "write", refuse)
        log.write("refused\n")
        monkeypatch.setattr(os, "write", real_write)
        log.write("after\n")
    assert (tmp_path / "api.log").read_text() == ("before\n2 lines before this one could not be written\nafter\n")


def test_maintenance_deletes_older_parts_after_thirty_days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGERMART_DATA_DIR", str(tmp_path))
    logs = tmp_path / "logs"
    logs.mkdir()
    for name, days in (("api.log", 99), ("api.log.1", 29), ("api.log.2", 31), ("cycle.log.1", 40)):
        (logs / name).write_text("line\n")
        written_at = time.time() - days * 86_400
        os.utime(logs / name, (written_at, written_at))
    assert purge_logs(dg.build_op_context()) == 2
    assert sorted(path.name for path in logs.iterdir()) == ["api.log", "api.log.1"]
