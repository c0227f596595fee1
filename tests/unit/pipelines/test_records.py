"""Dagster's records: damaged ones are detected and set aside."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pipelines.defs.records import find_damaged, set_aside_damaged
from tests.damages import Damage, cut, emptied, garbage, overwritten


def database(folder: Path) -> Path:
    path = folder / "runs.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "create table runs as with recursive n(i) as (select 1 union all select i + 1 from n) "
            "select i, hex(randomblob(200)) as t from n limit 2000"
        )
        connection.commit()
    return path


@pytest.mark.parametrize("damage", [cut, emptied, garbage, overwritten])
def test_damaged_records_are_set_aside_whole(tmp_path: Path, damage: Damage) -> None:
    folder = tmp_path / "dagster"
    folder.mkdir()
    path = database(folder)
    assert (find_damaged(folder), set_aside_damaged(folder)) == (None, None)
    damage(path)
    damaged = path.read_bytes()
    assert find_damaged(folder) == path
    assert set_aside_damaged(folder) == path
    assert list(folder.iterdir()) == []
    assert (tmp_path / "dagster.damaged" / "runs.db").read_bytes() == damaged
    assert find_damaged(folder) is None
    # Only one damaged copy is kept.
    damage(database(folder))
    assert set_aside_damaged(folder) == path
    assert [one.name for one in tmp_path.iterdir()].count("dagster.damaged") == 1
