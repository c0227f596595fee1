"""Locks that a session of PostgreSQL holds, for writers on several machines.

PostgreSQL releases a lock when the session ends, so a killed writer never blocks the next one. The connection must not
go through a pooler that changes sessions between transactions.
"""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from control.postgres import connection_limits

if TYPE_CHECKING:
    import psycopg

_POLL_SECONDS = 0.1
_WAIT_SECONDS = 10
# No statement on a lake's catalogue takes as long.
_STATEMENT_SECONDS = 300
_LOCK_ROUNDS = 3


class SessionLockBusyError(Exception):
    """Another session held the lock for all the time; `holder` describes it."""

    def __init__(self, holder: str) -> None:
        super().__init__(holder)
        self.holder = holder


class SessionLockError(Exception):
    """PostgreSQL does not answer, or refuses; the message is its own, which has no password."""


@contextmanager
def session_lock(database: str, name: str, purpose: str, wait_seconds: float) -> Iterator[None]:
    """Hold a lock of a database during the block.

    Args:
        database: connection text of PostgreSQL.
        name: name of the lock.
        purpose: description of the work, shown to writers that wait.
        wait_seconds: longest wait for another holder.

    Raises:
        SessionLockBusyError: another session held it for all that time.
        SessionLockError: PostgreSQL does not answer, or refuses.
    """
    with open_session(database, purpose) as session:
        # PostgreSQL notices within a minute that this machine is gone, and gives the lock to another one.
        session.execute("set tcp_keepalives_idle = 20; set tcp_keepalives_interval = 10")
        _take(session, name, wait_seconds)
        yield


@contextmanager
def open_session(database: str, purpose: str) -> Iterator["psycopg.Connection"]:
    """Open a session in which each statement is a transaction.

    Raises:
        SessionLockError: PostgreSQL does not answer, or refuses; also for statements inside the block.
    """
    # Only where locks of several machines are configured.
    import psycopg

    try:
        with closing(
            psycopg.connect(
                limited(database),
                autocommit=True,
                application_name=f"ledgermart: {purpose}"[:63],
            )
        ) as session:
            yield session
    except psycopg.Error as error:
        raise SessionLockError(str(error)) from None


def limited(database: str) -> str:
    """Return a connection text with limits of time; those that it has stay.

    Raises:
        SessionLockError: it is no connection text.
    """
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    try:
        given = conninfo_to_dict(database)
    except psycopg.Error:
        # Without its cause: that message may have the password.
        raise SessionLockError("the connection text cannot be read") from None
    further = f"-c statement_timeout={_STATEMENT_SECONDS}s {given.pop('options', '') or ''}"
    return make_conninfo("", **(connection_limits(_WAIT_SECONDS, further) | given))


def is_held(database: str, name: str) -> bool:
    """Return whether a session holds a lock of a database.

    Raises:
        SessionLockError: PostgreSQL does not answer, or refuses.
    """
    with open_session(database, "a check") as session:
        return _holder(session, name) is not None


def is_direct(database: str) -> bool:
    """Return whether a connection has one session of PostgreSQL from one statement to the next.

    A first connection takes a lock. Then a second one begins a transaction, for which a pooler in transaction mode uses
    the idle session of the first.

    Raises:
        SessionLockError: PostgreSQL does not answer, or refuses.
    """
    with open_session(database, "a check") as first, open_session(database, "a check") as second:
        return has_own_session(first, second)


def _take(session: "psycopg.Connection", name: str, wait_seconds: float) -> None:
    deadline = time.monotonic() + wait_seconds
    while True:
        row = session.execute("select pg_try_advisory_lock(hashtextextended(%s, 0))", [name]).fetchone()
        if row == (True,):
            return
        if time.monotonic() >= deadline:
            raise SessionLockBusyError(_holder(session, name) or "another process")
        time.sleep(_POLL_SECONDS)


def _holder(session: "psycopg.Connection", name: str) -> str | None:
    """Return a description of the session that holds a lock of this database; None if it is free."""
    row = session.execute(
        """
        select sessions.application_name, sessions.client_addr::text, sessions.backend_start
        from pg_locks as locks
        inner join pg_stat_activity as sessions on locks.pid = sessions.pid
        where
            locks.locktype = 'advisory' and locks.granted
            and locks.database = (select oid from pg_database where datname = current_database())
            and (locks.classid::bigint << 32 | locks.objid::bigint) = hashtextextended(%s, 0)
        """,
        [name],
    ).fetchone()
    return None if row is None else f"{row[0]!r} from {row[1] or 'this machine'}, since {row[2]:%H:%M:%S}"


def has_own_session(first: "psycopg.Connection", second: "psycopg.Connection") -> bool:
    """Return whether two connections have a session of PostgreSQL each, from one statement to the next.

    The first one takes a lock of its own. Then the second one begins a transaction, for which a pooler in transaction
    mode uses the idle session of the first.
    """
    row = first.execute("select pg_backend_pid()").fetchone()
    assert row is not None
    key = f"ledgermart check {row[0]}"
    first.execute("select pg_advisory_lock(hashtextextended(%s, 0))", [key])
    try:
        for _ in range(_LOCK_ROUNDS):
            with second.transaction():
                taken = second.execute("select pg_try_advisory_xact_lock(hashtextextended(%s, 0))", [key]).fetchone()
                if taken == (True,) or first.execute("select pg_backend_pid()").fetchone() != row:
                    return False
    finally:
        first.execute("select pg_advisory_unlock(hashtextextended(%s, 0))", [key])
    return True
