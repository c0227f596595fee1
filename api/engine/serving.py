"""The published versions of the marts: which one is in force, and named queries over it.

Where the one published last cannot be read, the newest before it that can is in force. What rows mean does not go here.
"""

import logging
import math
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import msgspec
import pyarrow as pa

from api.engine.cache_warmer import CacheWarmer
from api.engine.lru_cache import LruCache
from api.engine.query_texts import load_queries, over
from api.engine.rows import VersionsRow
from api.engine.tables import Table, Tables
from api.errors import ApiError
from warehouse.port import Mark, PointerError, PublishedVersions, SharingError, is_damage

Row = TypeVar("Row", bound=msgspec.Struct)
Value = TypeVar("Value")

_POINTER_SECONDS = 0.2
_IDLE_SECONDS = 60.0
_TABLES_SECONDS = 5.0  # what an earlier version was read by goes sooner: it may be large
_MOST_OPEN = 4  # versions open at once while idle; each has its own memory
_MOST_REMEMBERED = 10_000  # derived values kept per version, a few hundred bytes each
_RETRY_SECONDS = 10.0  # a file that could not be opened is tried again; there may only have been too many open ones
_NO_DISK = re.compile("Failed to create directory")  # what does not fit into memory goes beside the file, where it may

_log = logging.getLogger("ledgermart.api")


class InForce(msgspec.Struct, frozen=True):
    """The version that answers; `trouble` says why it is not the one that was published last."""

    version: int
    published_at: datetime
    trouble: str | None = None


class _Deadlines:
    """Interrupts statements that run too long; one thread watches all of them."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._condition = threading.Condition()
        self._running: OrderedDict[object, tuple[float, duckdb.DuckDBPyConnection]] = OrderedDict()
        self._is_closed = False
        self._thread = threading.Thread(target=self._watch, name="statement-deadlines", daemon=True)
        self._thread.start()

    @contextmanager
    def limit(self, cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
        token = object()
        with self._condition:
            self._running[token] = (time.monotonic() + self._seconds, cursor)
            if len(self._running) == 1:
                self._condition.notify()
        try:
            yield
        finally:
            with self._condition:
                self._running.pop(token, None)

    def close(self) -> None:
        with self._condition:
            self._is_closed = True
            self._condition.notify()
        self._thread.join()

    def _watch(self) -> None:
        with self._condition:
            while not self._is_closed:
                if not self._running:
                    self._condition.wait()
                    continue
                # Every statement has the same time, so the first one in is the first one due.
                token, (deadline, cursor) = next(iter(self._running.items()))
                remaining = deadline - time.monotonic()
                if remaining > 0:
                    self._condition.wait(remaining)
                else:
                    # The lock is held, so the statement cannot have ended and the interrupt cannot hit another one.
                    cursor.interrupt()
                    del self._running[token]


class _OpenVersion:
    """One open file; cursors are kept for reuse, derived values for as long as the file is open."""

    def __init__(
        self, published: PublishedVersions, number: int, mark: Mark, memory_megabytes: int, now: float
    ) -> None:
        self.number = number
        self.users = 0
        self.mark = mark
        self.is_damaged = False
        self.last_used = now
        opened = published.open(number, memory_megabytes)
        self._connection, self.epoch, self.tenant_versions = opened.connection, opened.epoch, opened.tenant_versions
        self._cursors: list[duckdb.DuckDBPyConnection] = []
        self._lock = threading.Lock()
        self._remembered = LruCache(_MOST_REMEMBERED)
        self.tables = Tables(self._connection, memory_megabytes)

    def take_cursor(self) -> duckdb.DuckDBPyConnection:
        with self._lock:
            return self._cursors.pop() if self._cursors else self._connection.cursor()

    def return_cursor(self, cursor: duckdb.DuckDBPyConnection) -> None:
        with self._lock:
            self._cursors.append(cursor)

    def get_or_compute(self, key: Any, make: Callable[[], Value]) -> Value:
        return self._remembered.get_or_compute(key, make)

    def close(self) -> None:
        self.tables.close()
        for cursor in self._cursors:
            cursor.close()
        self._connection.close()


class Snapshot:
    """One request's view of one version."""

    def __init__(
        self,
        version: _OpenVersion,
        cursor: duckdb.DuckDBPyConnection,
        deadlines: _Deadlines,
        queries: Mapping[str, str],
        cache_warmer: "CacheWarmer[Snapshot]",
        *,
        is_past: bool,
    ) -> None:
        self.version = version.number
        self.epoch = version.epoch
        self._is_past = is_past
        self._version = version
        self._cursor = cursor
        self._deadlines = deadlines
        self._queries = queries
        self._cache_warmer = cache_warmer
        self._tables: set[Table] = set()

    def data_version(self, tenant_id: str) -> int:
        """Return the tenant's own number, which nothing of others moves on; 0 before anything was built for it."""
        return self._version.tenant_versions.get(tenant_id, 0)

    def rows(self, query: str, row_type: type[Row], **parameters: Any) -> list[Row]:
        """Run a named query and return its rows, in the order of the query.

        Args:
            query: name of a file in `queries/`.
            row_type: struct whose fields are the query's columns, in that order.
            parameters: exactly the parameters the query names.

        Raises:
            ApiError: 503, the query took too long or too much memory, or the file is damaged or of another release.
                410, an older version than the newest is of another release.
        """
        return self._run(query, self._queries[query], row_type, parameters)

    def rows_over(self, tables: Mapping[str, Table], query: str, row_type: type[Row], **parameters: Any) -> list[Row]:
        """Run a named query that reads tables of `table` by other names, which are the keys; the rest as `rows`."""
        return self._run(query, over(tables, self._queries[query]), row_type, parameters)

    def columns_over(self, tables: Mapping[str, Table], query: str, **parameters: Any) -> pa.Table:
        """Run a named query as `rows_over`, and return the columns of its rows without an object for each value."""
        text = over(tables, self._queries[query])
        return self._execute(query, text, parameters, lambda result: result.to_arrow_table())

    def table(self, key: tuple[Any, ...], tables: Mapping[str, Table], query: str, **parameters: Any) -> Table:
        """Return a table of the rows of a named query, made once for this version while there is room.

        It stays at least until this snapshot releases it or ends; the rest as `rows_over`.

        Args:
            key: what tells it from other tables of the version.
            tables: what the query reads of other tables.
            query: name of a file in `queries/`.
            parameters: exactly the parameters the query names.
        """
        text = over(tables, self._queries[query])

        def make(statement: str) -> None:
            self._execute(query, text, parameters, lambda result: result.fetchall(), into=statement)

        found = self._version.tables.take(key, make)
        if found in self._tables:
            self._version.tables.release(found)
        self._tables.add(found)
        return found

    def warm(self, key: tuple[Any, ...], make: "Callable[[Snapshot], object]") -> None:
        """Let something be made of later versions as well, before it is asked for there; not where this one is past."""
        if not self._is_past:
            self._cache_warmer.note(key, self.version, make)

    def release(self) -> None:
        """Give back the tables that were taken; they are taken or made again when they are read again."""
        for table in self._tables:
            self._version.tables.release(table)
        self._tables.clear()

    def _run(self, query: str, text: str, row_type: type[Row], parameters: dict[str, Any]) -> list[Row]:
        columns, rows = self._execute(query, text, parameters, _fetch_rows)
        if columns != row_type.__struct_fields__:
            raise TypeError(f"query {query} has columns {columns}, {row_type.__name__} has other fields")
        return [row_type(*row) for row in rows]

    def _execute(
        self,
        query: str,
        text: str,
        parameters: dict[str, Any],
        read: Callable[[duckdb.DuckDBPyConnection], Value],
        *,
        into: str = "",
    ) -> Value:
        try:
            with self._deadlines.limit(self._cursor):
                return read(self._cursor.execute(f"{into} {text}", parameters))
        except duckdb.InterruptException as error:
            raise ApiError(
                503,
                "query-timeout",
                "the query took longer than LEDGERMART_QUERY_TIMEOUT_SECONDS; ask for a shorter range",
                headers={"Retry-After": "5"},
            ) from error
        except duckdb.OutOfMemoryException as error:
            raise _too_much_memory() from error
        except (duckdb.CatalogException, duckdb.BinderException) as error:
            if self._fits(text):
                raise
            _log.error("version %s lacks data that query %s reads: %s", self.version, query, error)
            raise self._other_release() from error
        except duckdb.IOException as error:
            if _NO_DISK.search(str(error)):
                raise _too_much_memory() from error
            if not is_damage(str(error)):
                raise
            # The blocks of a file are first looked at when they are read.
            self._version.is_damaged = True
            _log.error("version %s cannot be read: %s", self.version, error)
            raise ApiError(
                503,
                "version-damaged",
                "the published version cannot be read; repeat the request to use the version before it",
                headers={"Retry-After": "1"},
            ) from error

    def _fits(self, text: str) -> bool:
        """Whether this version has the tables, columns and functions that a query names, whatever its parameters."""
        try:
            self._cursor.execute(f"prepare fitting as {text}")
        except (duckdb.CatalogException, duckdb.BinderException):
            return False
        self._cursor.execute("deallocate fitting")
        return True

    def _other_release(self) -> ApiError:
        if self._is_past:
            return _cursor_expired("was published by another release")
        return not_published(
            "another release published the present version, which lacks data for this answer; "
            "the next cycle publishes a complete version"
        )

    def row(self, query: str, row_type: type[Row], **parameters: Any) -> Row | None:
        """Run a named query that gives at most one row."""
        rows = self.rows(query, row_type, **parameters)
        return rows[0] if rows else None

    def get_or_compute(self, key: tuple[Any, ...], make: Callable[[], Value]) -> Value:
        """Return a value made from this version alone, made once; versions never change."""
        return self._version.get_or_compute(key, make)


class Serving:
    """Published versions of one shard, or of all shards where there is one folder.

    Args:
        published: the versions, or the folder with `current.json` and the version files.
        memory_megabytes: memory limit of each open version.
        timeout_seconds: longest run of one statement.
        clock: seconds that never run backwards; statements are timed by the real clock.
        queries: text of each query by name; default: all files in `queries/`.
    """

    def __init__(
        self,
        published: PublishedVersions | Path,
        memory_megabytes: int,
        timeout_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        queries: Mapping[str, str] | None = None,
    ) -> None:
        self._published = PublishedVersions(published) if isinstance(published, Path) else published
        self._memory_megabytes = memory_megabytes
        self._clock = clock
        self._deadlines = _Deadlines(timeout_seconds)
        self._queries = load_queries() if queries is None else queries
        self._cache_warmer = CacheWarmer(self._newest, self.snapshot)
        self._lock = threading.Lock()
        self._open: dict[int, _OpenVersion] = {}
        self._replaced: list[_OpenVersion] = []  # their files were replaced while they were open
        self._in_force: InForce | None = None
        self._due = -math.inf
        self._unreadable: dict[tuple[int, Mark], float] = {}  # until when a file is not tried again

    @contextmanager
    def snapshot(self, version: int | None = None) -> Iterator[Snapshot]:
        """Give a view of a version, by default the one in force; it stays the same until the context ends.

        Raises:
            ApiError: 410 when the version's file is gone or damaged, 503 when nothing is published, or when the store
                of versions does not answer.
        """
        if version is not None:
            self._fetch(version)
        opened, is_past = self._acquire(version)
        cursor = opened.take_cursor()
        snapshot = Snapshot(opened, cursor, self._deadlines, self._queries, self._cache_warmer, is_past=is_past)
        try:
            yield snapshot
        finally:
            snapshot.release()
            opened.return_cursor(cursor)
            self._release(opened)

    @contextmanager
    def tenant_snapshot(self, tenant_id: str, data_version: int | None) -> Iterator[Snapshot]:
        """Give a view of the newest version that shows a tenant this number of its own; None: the one in force.

        Raises:
            ApiError: 410 when there is none any more, 503 when nothing is published.
        """
        with self.snapshot() as current:
            if data_version is None or data_version == current.data_version(tenant_id):
                yield current
                return
            bounds = current.rows("versions_of_number", VersionsRow, tenant_id=tenant_id, data_version=data_version)
            version_in_force = current.version
        kept = (
            version
            for bound in bounds
            for version in self._published.available()
            if bound.after_version < version <= bound.last_version
        )
        newest = max(kept, default=None)
        if newest is None:
            if self.catch_up(version_in_force + 1):
                with self.tenant_snapshot(tenant_id, data_version) as found:
                    yield found
                return
            raise _cursor_expired("has been removed")
        with self.snapshot(newest) as found:
            yield found

    def in_force(self) -> InForce:
        """Return what is in force now.

        Raises:
            ApiError: 503, nothing is published.
        """
        with self._lock:
            return self._find_in_force()

    def epoch(self) -> str:
        """Return the installation's epoch, as the version in force tells it; empty where nothing is published."""
        with self._lock:
            try:
                opened = self._opened(self._find_in_force().version)
            except ApiError:
                # What is configured is answered without a version, too.
                return ""
            return opened.epoch if opened else ""

    def catch_up(self, version: int) -> bool:
        """Look for newer versions now if this node is behind a version that another node knows.

        Returns:
            Whether the version in force changed.
        """
        is_newer = self._published.catch_up(version)
        if is_newer:
            with self._lock:
                self._due = -math.inf
        return is_newer

    def has(self, version: int) -> bool:
        """Return whether a version that was pinned just now stays."""
        return self._published.is_kept(version)

    def megabytes_needed(self, pinned: Collection[int]) -> int:
        """Say how much disk space the versions need that may not be removed while these are pinned."""
        return self._published.megabytes_needed(pinned)

    def megabytes_held(self, pinned: Collection[int]) -> int:
        """Return the part of that disk space that only these pins keep."""
        return self._published.megabytes_held(pinned)

    def close(self) -> None:
        """Close every version; no request may be under way."""
        self._cache_warmer.close()
        self._deadlines.close()
        with self._lock:
            for opened in (*self._open.values(), *self._replaced):
                opened.close()
            self._open.clear()
            self._replaced.clear()

    def _fetch(self, version: int) -> None:
        try:
            self._published.fetch(version)
        except SharingError as error:
            _log.error("version %s: %s", version, error)
            raise not_published(
                "the published version of this cursor cannot be fetched from the store of versions; repeat the request"
            ) from error

    def has_reached(self, version: int) -> bool:
        """Return whether the version in use is this one or a newer one; if it is not, look for newer ones first."""
        if (self._newest() or 0) < version:
            self._published.catch_up(version)
            with self._lock:
                self._due = -math.inf
        return (self._newest() or 0) >= version

    def _newest(self) -> int | None:
        try:
            return self.in_force().version
        except ApiError:
            return None

    def _acquire(self, version: int | None) -> tuple[_OpenVersion, bool]:
        """Open a version, by default the one in force, and say whether it is an earlier one."""
        with self._lock:
            current = self._find_in_force().version
            number = current if version is None else version
            opened = self._opened(number)
            if opened is None:
                if version is None:
                    raise not_published()
                raise _cursor_expired("has been removed")
            opened.users += 1
            self._close_idle(current)
            return opened, number != current

    def _release(self, opened: _OpenVersion) -> None:
        with self._lock:
            opened.users -= 1
            opened.last_used = self._clock()

    def _close_idle(self, current: int) -> None:
        now = self._clock()
        for opened in [opened for opened in self._replaced if opened.users == 0]:
            opened.close()
            self._replaced.remove(opened)
        for opened in self._open.values():
            if opened.users == 0 and opened.number != current and now - opened.last_used > _TABLES_SECONDS:
                opened.tables.clear()
        idle = sorted(
            (opened for opened in self._open.values() if opened.users == 0 and opened.number != current),
            key=lambda opened: opened.last_used,
        )
        excess = len(self._open) - _MOST_OPEN
        for position, opened in enumerate(idle):
            is_gone = opened.is_damaged or self._published.mark(opened.number) is None
            if position < excess or now - opened.last_used > _IDLE_SECONDS or is_gone:
                opened.close()
                del self._open[opened.number]
                if opened.is_damaged:
                    self._unreadable[opened.number, opened.mark] = math.inf

    def _find_in_force(self) -> InForce:
        """Return the version that the pointer names, or else the newest before it that can be opened."""
        now = self._clock()
        if self._in_force is not None and now < self._due and self._opened(self._in_force.version) is not None:
            return self._in_force
        found = self._look()
        if found.trouble is not None and found != self._in_force:
            _log.error("degraded: %s (version %s)", found.trouble, found.version)
        self._in_force, self._due = found, now + _POINTER_SECONDS
        return found

    def _look(self) -> InForce:
        newest = 2**63
        try:
            named = self._published.newest()
        except PointerError as error:
            trouble = str(error)
        else:
            if self._opened(named.version) is not None:
                return InForce(named.version, named.published_at)
            newest, trouble = named.version, "the last published version cannot be read"
        kept = self._published.kept()
        for number in sorted((number for number in kept if number < newest), reverse=True):
            if self._opened(number) is not None:
                trouble = f"{trouble}; the newest readable version is used until the next publication"
                return InForce(number, kept[number], trouble)
        raise not_published(f"{trouble}, and no earlier version can be read" if kept else None)

    def _opened(self, number: int) -> _OpenVersion | None:
        """Open a version unless it is open; None when that cannot be done."""
        mark = self._published.mark(number)
        if mark is None:
            return None
        opened = self._open.get(number)
        if opened is not None and opened.mark != mark and not opened.is_damaged:
            # After a restore, other data is published under the same number.
            self._replaced.append(self._open.pop(number))
            opened = None
        if opened is not None:
            return None if opened.is_damaged else opened
        if self._clock() < self._unreadable.get((number, mark), -math.inf):
            return None
        try:
            opened = _OpenVersion(self._published, number, mark, self._memory_megabytes, self._clock())
            self._open[number] = opened
        except duckdb.IOException as error:
            _log.error("version %s cannot be opened: %s", number, error)
            self._unreadable[number, mark] = self._clock() + _RETRY_SECONDS
            return None
        return opened


def _fetch_rows(result: duckdb.DuckDBPyConnection) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    return tuple(column[0] for column in result.description), result.fetchall()


def _cursor_expired(why: str) -> ApiError:
    return ApiError(410, "cursor-expired", f"the published version of this cursor {why}; start again without a cursor")


def _too_much_memory() -> ApiError:
    return ApiError(
        503,
        "query-memory",
        "the query needed more than LEDGERMART_QUERY_MEMORY_MB; ask for a shorter range",
        headers={"Retry-After": "5"},
    )


def not_published(detail: str | None = None) -> ApiError:
    """Return the error of a request that no version can answer."""
    return ApiError(
        503,
        "not-published",
        detail or "no version of the marts is published; the next cycle publishes one",
        headers={"Retry-After": "5"},
    )
