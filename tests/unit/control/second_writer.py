"""A second writer of the control store that waits for the test's transaction."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from sqlalchemy import Engine, event

from control.settings import Settings
from tests.waiting import eventually

Value = TypeVar("Value")

_COUNT = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


def start_waiting(settings: Settings, work: Callable[[], Value]) -> Future[Value]:
    """Run `work` in a thread, and return as soon as it waits for a lock; the end of the test's transaction frees it.

    Args:
        settings: of the store that `work` writes to. Postgres counts the sessions that wait. SQLite cannot; there, a
            writer waits as soon as it begins.
        work: opens a transaction. It fails the test if it ends without waiting.
    """
    with _counting(settings.control_url) as count:
        before = count()
        executor = ThreadPoolExecutor(1)
        future = executor.submit(work)
        executor.shutdown(wait=False)
        eventually(lambda: future.done() or count() > before, "the second writer waits for a lock")
    assert not future.done(), f"the second writer did not wait: {future.exception() or future.result()}"
    return future


@contextmanager
def _counting(url: str) -> Iterator[Callable[[], int]]:
    if url.startswith("sqlite"):
        statements: list[str] = []

        def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
            statements.append(statement)

        event.listen(Engine, "before_cursor_execute", note)
        try:
            yield lambda: statements.count("begin immediate")
        finally:
            event.remove(Engine, "before_cursor_execute", note)
        return
    with psycopg.connect(url, autocommit=True) as connection:
        yield lambda: connection.execute(_COUNT).fetchall()[0][0]
