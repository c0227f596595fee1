"""Dagster's records are written over connections that stay, without waiting for the disk; other databases as before."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    NullPool,
    Table,
    create_engine,
    inspect,
    select,
    text,
)

from pipelines.defs.records import find_damaged, keep_connections, set_aside_damaged
from tests.damages import Damage, cut, emptied, garbage, overwritten

_FULL, _NORMAL = 2, 1


def engine(path: Path) -> Engine:
    """An engine as Dagster makes one for each transaction."""
    return create_engine(f"sqlite:///{path}", poolclass=NullPool)


def synchronous(connection: Connection) -> int:
    """How a connection writes its database."""
    return int(connection.execute(text("pragma synchronous")).scalar_one())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder behind a symbolic link, whose databases are kept open."""
    (tmp_path / "disk" / "dagster").mkdir(parents=True)
    (tmp_path / "data").symlink_to(tmp_path / "disk")
    keep_connections(tmp_path / "data" / "dagster")
    return tmp_path / "data" / "dagster"


def test_records_behind_a_symbolic_link_are_found(folder: Path) -> None:
    with engine(folder / "runs.db").connect() as connection:
        assert synchronous(connection) == _NORMAL
    with engine(folder.parent / "control.db").connect() as connection:
        assert synchronous(connection) == _FULL


def test_a_connection_stays_for_the_next_and_keeps_nothing_of_the_last(folder: Path) -> None:
    for database, is_kept in ((folder / "runs.db", True), (folder.parent / "control.db", False)):
        with engine(database).connect() as first:
            first.execute(text("create table t (a integer)"))
            first.commit()
            own = first.connection.dbapi_connection
            # Two at once are two: neither is in the other's transaction.
            with engine(database).connect() as second:
                first.execute(text("insert into t values (1)"))
                assert second.execute(text("select count(*) from t")).scalar_one() == 0
        with engine(database).connect() as one, engine(database).connect() as other:
            found = {id(each.connection.dbapi_connection) for each in (one, other)}
            assert (id(own) in found) is is_kept
            # It was not committed.
            assert one.execute(text("select count(*) from t")).scalar_one() == 0
            assert other.execute(text("select count(*) from t")).scalar_one() == 0


def test_what_one_engine_compiled_serves_the_next(folder: Path) -> None:
    statements = Table("t", MetaData(), Column("a", Integer))
    for database, is_shared in ((folder / "runs.db", True), (folder.parent / "control.db", False)):
        compiled = []
        for number in range(2):
            with engine(database).begin() as connection:
                statements.create(connection, checkfirst=True)
                done = connection.execute(statements.insert().values(a=number))
                compiled.append(done.context.compiled)
                assert connection.execute(select(statements.c.a)).scalars().all() == list(range(number + 1))
        assert (compiled[0] is compiled[1]) is is_shared


def test_columns_of_a_table_are_looked_up_once(folder: Path) -> None:
    for database, is_kept in ((folder / "runs.db", True), (folder.parent / "control.db", False)):
        found = []
        for column in ("b", "c"):
            with engine(database).begin() as connection:
                connection.execute(text("create table if not exists t (a integer)"))
                found.append([each["name"] for each in inspect(connection).get_columns("t")])
                connection.execute(text(f"alter table t add column {column} integer"))
        assert found == [["a"], ["a"] if is_kept else ["a", "b"]]


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
    # Only one is kept.
    damage(database(folder))
    assert set_aside_damaged(folder) == path
    assert [one.name for one in tmp_path.iterdir()].count("dagster.damaged") == 1
