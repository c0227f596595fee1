"""Locks that a session of PostgreSQL holds, and the lock of a shard."""

from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from control.errors import StoreUnavailable
from control.settings import Settings, load_settings
from tests.chain.process import free_port
from tests.unit.control.postgres import new_database, unique_name
from warehouse.lock import WriterBusyError
from warehouse.port import Warehouse
from warehouse.session_lock import SessionLockBusyError, has_own_session, is_held, limited, session_lock


def settings_of(database: str, folder: Path, shard: int = 0) -> Settings:
    return load_settings(
        {
            "LEDGERMART_DATA_DIR": str(folder),
            "LEDGERMART_CONTROL_URL": database,
            "LEDGERMART_VERSIONS": str(folder.parent / "versions"),
            "LEDGERMART_SHARD": str(shard),
            "LEDGERMART_LOCK_WAIT_SECONDS": "0",
        }
    )


def test_connections_have_limits_of_time_and_those_of_their_text() -> None:
    found = conninfo_to_dict(limited("postgresql://user:it's@a/b?connect_timeout=3&options=-c%20lock_timeout%3D1s"))
    assert (found["password"], found["host"], found["dbname"]) == ("it's", "a", "b")
    assert (found["connect_timeout"], found["keepalives_idle"], found["tcp_user_timeout"]) == ("3", "20", "50000")
    # The last one of each name counts.
    assert found["options"] == "-c lock_timeout=10s -c statement_timeout=300s -c lock_timeout=1s"


def test_a_lock_is_held_until_the_block_ends_and_names_its_holder(empty_database: str) -> None:
    with session_lock(empty_database, "one", "a build", 1):
        with session_lock(empty_database, "another", "a build", 0):
            pass
        with pytest.raises(SessionLockBusyError, match="'ledgermart: a build' from 127"):
            with session_lock(empty_database, "one", "a second build", 0.3):
                pass
    with session_lock(empty_database, "one", "a second build", 5):
        pass


def test_a_lock_is_seen_from_its_own_database_alone(empty_database: str, postgres_server: str) -> None:
    assert not is_held(empty_database, "one")
    with session_lock(empty_database, "one", "a build", 1), new_database(postgres_server, unique_name()) as other:
        assert is_held(empty_database, "one")
        assert not is_held(empty_database, "another")
        assert not is_held(other, "one")
    assert not is_held(empty_database, "one")


def test_a_lock_ends_with_its_session(empty_database: str) -> None:
    with session_lock(empty_database, "one", "a build", 1):
        with psycopg.connect(empty_database, autocommit=True) as session:
            session.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'ledgermart: a build'"
            )
        with session_lock(empty_database, "one", "a second build", 5):
            pass


def test_one_machine_at_a_time_builds_a_shard(empty_database: str, tmp_path: Path) -> None:
    first, second, other = (
        Warehouse(settings_of(empty_database, tmp_path / name, shard))
        for name, shard in (("first", 3), ("second", 3), ("other", 4))
    )
    with first.exclusive("a cycle"):
        with other.exclusive("a cycle"):
            pass
        with pytest.raises(WriterBusyError, match="being written by 'ledgermart: a cycle' from 127"):
            with second.exclusive("a cycle"):
                pass
    with second.exclusive("a cycle"):
        pass


def test_without_its_database_a_shard_is_not_built(tmp_path: Path) -> None:
    database = f"postgresql://someone:the-password@127.0.0.1:{free_port()}/nothing"
    with pytest.raises(StoreUnavailable, match="the control store does not answer") as caught:
        with Warehouse(settings_of(database, tmp_path / "data")).exclusive("a cycle"):
            pass
    assert "the-password" not in str(caught.value)


def test_a_session_that_a_pooler_gives_to_others_is_noticed(empty_database: str) -> None:
    """A pooler in transaction mode gives the idle session of one client to the next one."""
    with (
        psycopg.connect(empty_database, autocommit=True) as first,
        psycopg.connect(empty_database, autocommit=True) as second,
    ):
        assert has_own_session(first, second)
        assert not has_own_session(first, first)
        assert has_own_session(first, second)
