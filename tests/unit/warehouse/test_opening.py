"""What is opened writes nothing to the standard output, where commands print JSON."""

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from warehouse.opening import connect
from warehouse.versions import open_locked_down


@pytest.mark.parametrize("opened", [connect, lambda path: open_locked_down(path, 512)])
def test_no_progress_bar_is_drawn(opened: Callable[[Path], duckdb.DuckDBPyConnection], tmp_path: Path) -> None:
    path = tmp_path / "file.duckdb"
    duckdb.connect(str(path)).close()
    with opened(path) as connection:
        for reader in (connection, connection.cursor()):
            assert reader.execute("select current_setting('enable_progress_bar')").fetchone() == (False,)


def test_a_file_that_is_locked_down_can_be_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "file.duckdb"
    duckdb.connect(str(path)).close()
    with open_locked_down(path, 512) as first, open_locked_down(path, 512) as second:
        for connection in (first, second):
            with pytest.raises(duckdb.InvalidInputException, match="locked"):
                connection.execute("set threads = 1")
