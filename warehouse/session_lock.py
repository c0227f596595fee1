"""Locks that a session of PostgreSQL holds, for writers on several machines.

PostgreSQL releases a lock when the session ends, so a killed writer never blocks the next one. The connection must not
go through a pooler that changes sessions between transactions.
"""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psycopg

_POLL_SECONDS = 0.1
_CONNECT_SECONDS = 10


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
    # Only where locks of several machines are configured.
    import psycopg

    try:
        session = psycopg.connect(
            database,
            autocommit=True,
            connect_timeout=_CONNECT_SECONDS,
            application_name=f"ledgermart: {purpose}"[:63],
        )
    except psycopg.Error as error:
        raise SessionLockError(str(error)) from None
    with closing(session):
        try:
            # PostgreSQL notices within a minute that this machine is gone, and gives the lock to another one.
            session.execute("set tcp_keepalives_idle = 20; set tcp_keepalives_interval = 10")
            _take(session, name, wait_seconds)
        except psycopg.Error as error:
            raise SessionLockError(str(error)) from None
        yield


def _take(session: "psycopg.Connection", name: str, wait_seconds: float) -> None:
    deadline = time.monotonic() + wait_seconds
    while True:
        row = session.execute("select pg_try_advisory_lock(hashtextextended(%s, 0))", [name]).fetchone()
        if row == (True,):
            return
        if time.monotonic() >= deadline:
            raise SessionLockBusyError(_holder(session, name))
        time.sleep(_POLL_SECONDS)


def _holder(session: "psycopg.Connection", name: str) -> str:
    row = session.execute(
        """
        select sessions.application_name, sessions.client_addr::text, sessions.backend_start
        from pg_locks as locks
        inner join pg_stat_activity as sessions on locks.pid = sessions.pid
        where
            locks.locktype = 'advisory' and locks.granted
            and (locks.classid::bigint << 32 | locks.objid::bigint) = hashtextextended(%s, 0)
        """,
        [name],
    ).fetchone()
    return "another process" if row is None else f"{row[0]!r} from {row[1] or 'this machine'}, since {row[2]:%H:%M:%S}"
