"""Publishing: immutable files, a pointer that moves at once, and old versions that go late."""

import os
import time
from pathlib import Path

import duckdb
import pytest

from pipelines.publish import current_publication, publish, published_versions, remove_old_versions


@pytest.fixture
def marts(tmp_path: Path) -> Path:
    path = tmp_path / "marts_build.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("create schema marts; create table marts.numbers as select 1 as number")
    return path


def _number(path: Path) -> int:
    with duckdb.connect(str(path), read_only=True) as connection:
        row = connection.execute("select number from marts.numbers").fetchone()
        assert row is not None
        return int(row[0])


def test_versions_are_copies_and_the_pointer_names_the_newest(marts: Path, tmp_path: Path) -> None:
    serving = tmp_path / "serving"
    assert current_publication(serving) is None
    assert publish(marts, serving, 1).version == 1
    with duckdb.connect(str(marts)) as connection:
        connection.execute("update marts.numbers set number = 2")
    assert publish(marts, serving, 2).version == 2

    assert {version: _number(path) for version, path in published_versions(serving).items()} == {1: 1, 2: 2}
    assert _number(serving / "current.duckdb") == 2
    current = current_publication(serving)
    assert current is not None
    assert (current.version, current.file) == (2, "marts-000000000002.duckdb")
    assert not list(serving.glob(".*"))


def test_a_reader_keeps_its_version_while_new_ones_come(marts: Path, tmp_path: Path) -> None:
    serving = tmp_path / "serving"
    publish(marts, serving, 1)
    with duckdb.connect(str(serving / "marts-000000000001.duckdb"), read_only=True) as reader:
        with duckdb.connect(str(marts)) as connection:
            connection.execute("update marts.numbers set number = 2")
        publish(marts, serving, 2)
        assert reader.execute("select number from marts.numbers").fetchall() == [(1,)]


def test_a_file_left_by_a_kill_before_the_pointer_moved_is_written_over(marts: Path, tmp_path: Path) -> None:
    serving = tmp_path / "serving"
    publish(marts, serving, 1)
    (serving / "marts-000000000002.duckdb").write_bytes(b"half")
    (serving / ".marts-000000000002.duckdb.tmp").write_bytes(b"half")
    assert publish(marts, serving, 2).version == 2
    assert _number(serving / "marts-000000000002.duckdb") == 1


def test_old_versions_go_after_the_grace_period_or_beyond_the_budget(marts: Path, tmp_path: Path) -> None:
    serving = tmp_path / "serving"
    for batch in range(1, 6):
        publish(marts, serving, batch)
    assert remove_old_versions(serving, grace_seconds=900, budget_bytes=10**12) == []
    hour_ago = time.time() - 3600
    for version in (1, 2):
        os.utime(published_versions(serving)[version], (hour_ago, hour_ago))
    # Version 1 was superseded when version 2 came, an hour ago; version 2 only now.
    assert remove_old_versions(serving, grace_seconds=900, budget_bytes=10**12) == [1]
    assert remove_old_versions(serving, grace_seconds=900, budget_bytes=0) == [2, 3]
    assert sorted(published_versions(serving)) == [4, 5]
