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
