"""Kills at a statement: the process ends in place of one more call to DuckDB, so no clock decides where."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

import duckdb

from pipelines.raw.database import open_warehouse


class Killed(BaseException):
    """Simulated end of the process."""


class _EndingConnection:
    """A connection that passes a limited number of calls on, and does not roll back at the end."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, spend: Callable[[], None]) -> None:
        self._connection = connection
        self._spend = spend

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self._spend()
            return getattr(self._connection, name)(*arguments, **named)

        return call


@contextmanager
def ending_after(calls: int, end: Callable[[], NoReturn], module: str) -> Iterator[None]:
    """Have the warehouse that a module opens call `end` once a number of calls is used up.

    Args:
        calls: number of calls to all connections together.
        end: kills the process, or raises.
        module: its name; it imports `open_warehouse`.
    """
    left = calls

    def spend() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            end()

    @contextmanager
    def opened(path: Path) -> Iterator[_EndingConnection]:
        with open_warehouse(path) as connection:
            yield _EndingConnection(connection, spend)

    with mock.patch(f"{module}.open_warehouse", opened):
        yield


def kill_this_process() -> NoReturn:
    """End as `kill -9` ends a process."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable: the signal cannot be caught")
