"""Opened files write nothing to standard output, where commands print JSON."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace

import duckdb
import pytest

from warehouse import opening
from warehouse.opening import connect
from warehouse.versions import open_locked_down


@pytest.mark.parametrize("opened", [connect, lambda path: open_locked_down(path, 512)])
def test_no_progress_bar_is_drawn(opened: Callable[[Path], duckdb.DuckDBPyConnection], tmp_path: Path) -> None:
    path = tmp_path / "file.duckdb"
    duckdb.connect(str(path)).close()
    with opened(path) as connection:
        for reader in (connection, connection.cursor()):
            assert reader.execute("select current_setting('enable_progress_bar')").fetchone() == (False,)


def test_locked_down_file_can_be_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "file.duckdb"
    duckdb.connect(str(path)).close()
    with open_locked_down(path, 512) as first, open_locked_down(path, 512) as second:
        for connection in (first, second):
            with pytest.raises(duckdb.InvalidInputException, match="locked"):
                connection.execute("set threads = 1")


def test_threads_open_a_file_at_once(tmp_path: Path) -> None:
    """They share the file's settings: one thread locks settings that another is about to set."""
    together = Barrier(8)

    def open_it(path: Path) -> duckdb.DuckDBPyConnection:
        together.wait()
        return open_locked_down(path, 512)

    with ThreadPoolExecutor(together.parties) as pool:
        for number in range(20):
            path = tmp_path / f"{number}.duckdb"
            duckdb.connect(str(path)).close()
            for connection in list(pool.map(open_it, [path] * together.parties)):
                assert connection.execute("select current_setting('lock_configuration')").fetchone() == (True,)
                connection.close()


def test_damaged_block_fails_without_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("create table n as select md5(i::text) as t from range(300000) as r(i)")
    with path.open("r+b") as file:
        # One byte of every block after the three headers.
        for at in range(3 * 4096 + 100, path.stat().st_size, 262_144):
            file.seek(at)
            file.write(b"\xa5")
    naps: list[float] = []
    monkeypatch.setattr(opening, "time", SimpleNamespace(monotonic=lambda: float(len(naps)), sleep=naps.append))
    with pytest.raises(duckdb.IOException, match="block"):
        connect(path)
    assert naps == []
