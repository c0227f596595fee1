"""What handlers work with: the services of the process, and the request being answered.

Here an answer gets its ETag, pages their cursors and links, and a write its idempotency. What is answered is decided
by the handlers and `reading`.
"""

import hashlib
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

import msgspec
from anyio import CapacityLimiter
from litestar import Request, Response
from sqlalchemy.orm import Session

from api.engine.serving import Serving, Snapshot
from api.engine.shards import Shards
from api.errors import ApiError
from api.http import formats, media_types
from api.http.file_context import FileContext
from api.http.paging import CursorCipher, Delivered, Key, Position, cursor_scope
from api.http.parameters import Moment, context_form, dated_items, read_moment
from api.http.rate_limits import RateLimiter, Refusals, SharedRateLimiter
from api.http.route_specs import RouteSpec
from api.http.turns import Turns
from api.schema import FieldError, Page, Schema
from control import idempotency, request_windows, service_secrets
from control.access import Principal
from control.networks.definitions import Network
from control.pricing.definitions import PriceSource
from control.pricing.links import LinksInForce, read_in_force
from control.request_windows import Lease
from control.settings import Settings
from control.store import ControlStore
from control.subjects import SubjectRow

Item = TypeVar("Item", bound=Schema)

# Look-ups of keys and leases of requests at once; each takes a millisecond, in a thread that no other work uses.
_MOST_KEY_LOOKUPS = 4

PENDING_WRITE = "pending_write"
"""Key of a request's state: a function that writes, to be run in a writer's turn before the request is answered."""

NO_STORE = {"Cache-Control": "no-store"}
ALL_ROWS = Page(limit=1, next_cursor=None)
"""The page of an answer that becomes a file, which has no pages."""


class Services:
    """The services of one process, opened when the application starts."""

    batch_rows = 5_000
    """Rows per query and chunk of a file: some megabytes at most, a small share of a query's fixed cost."""
    column_rows = 25_000
    """The same for rows that are read as columns: up to 400 bytes each. Such a query has a fixed cost of 9 ms."""

    def __init__(
        self,
        settings: Settings,
        store: ControlStore,
        shards: Shards,
        networks: dict[str, Network],
        price_sources: dict[str, PriceSource],
        clock: Callable[[], float],
    ) -> None:
        self.settings = settings
        self.store = store
        self.shards = shards
        self.networks = networks
        self.price_sources = price_sources
        self.limiter = RateLimiter(settings.rate_limit_per_minute, clock)
        self.refusals = Refusals(clock)
        # A read of one tenant may take a query's whole time; threads beyond the cores help only others.
        cores = os.cpu_count() or 1
        self.reads = Turns("reads", capacity=cores + 8, share=cores + 4, most_waiting=256)
        # SQLite admits one writer at a time. A second one would wait in a thread.
        self.writes = Turns("writes", *((1, 1) if store.has_one_writer else (4, 2)))
        # Threads share the interpreter: two large bodies at once take as long as one after another.
        self.parsing = Turns("large bodies", capacity=1, share=1)
        self.keys = CapacityLimiter(_MOST_KEY_LOOKUPS)
        self._shared_limiter = (
            None
            if store.has_one_writer
            else SharedRateLimiter(settings.rate_limit_per_minute, self._lease, self.keys, clock)
        )
        self._secrets: dict[str, bytes] = {}

    def cursor_cipher(self) -> CursorCipher:
        """Return the cipher of cursors."""
        return CursorCipher(self.secret(service_secrets.CURSOR_KEY))

    def secret(self, name: str) -> bytes:
        """Return a secret of the service; each is read once, when the control store is there."""
        if name not in self._secrets:
            with self.store.read() as session:
                self._secrets[name] = service_secrets.get(session, name)
        return self._secrets[name]

    async def admit(self, counted: str) -> dict[str, str]:
        """Count one request of a key or tenant, and return its headers; errors as `SharedRateLimiter.admit`.

        Only PostgreSQL serves several API nodes, which count together.
        """
        if self._shared_limiter is None:
            return self.limiter.admit(counted)
        return await self._shared_limiter.admit(counted)

    def _lease(self, counted: str, is_sweeping: bool) -> Lease:
        if is_sweeping:
            # In a transaction of its own: a lease locks its row, and other nodes wait for it.
            with self.store.write() as session:
                request_windows.sweep(session)
        with self.store.write() as session:
            return request_windows.lease(session, counted, self.settings.rate_limit_per_minute)

    def batch_size(self, *, reads_columns: bool) -> int:
        """Return the number of rows that a file reads at once."""
        return self.column_rows if reads_columns else self.batch_rows

    def links_in_force(self, session: Session, tenant_id: str) -> LinksInForce:
        """Return the links of a tenant as configured now."""
        return read_in_force(session, tenant_id, self.networks)


@dataclass(frozen=True, slots=True)
class Fetched(Generic[Item]):
    """Rows of one page and the key to go on after; None on the last page.

    Rows for a file may be a `pyarrow.Table`, with a column for each field of the struct.

    `first` is the key of its first row, and `delivered` is the content of the next cursor. Both are None if all pages
    come from one version.
    """

    rows: Sequence[Item]
    after: Key | None
    first: Key | None = None
    delivered: Delivered | None = None


Fetch = Callable[[Any, Key | None, int], Fetched[Item]]
"""Reads at most so many rows after a key, in the order of the collection, from a snapshot (None: configuration)."""


@dataclass(frozen=True, slots=True)
class Tabular(Generic[Item]):
    """All rows of a collection, in the tabular form asked for.

    Args:
        version: which they are read from; None: from configuration alone.
        data_version: the tenant's own number of it.
        row_type: struct of every row.
        fetch: reads them.
        batch_rows: how many at once.
        context: what holds for all rows.
        label: names a file that is of no token or wallet.
        state: what of them changes with neither the tenant's data nor its configuration.
    """

    version: int | None
    data_version: int | None
    row_type: type[Item]
    fetch: Fetch[Item]
    batch_rows: int
    context: FileContext
    label: str | None
    state: object


@dataclass(frozen=True, slots=True)
class Written(Generic[Item]):
    """What a write stored, as JSON, now or when it was first asked for."""

    status: int
    content: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def written(status: int, stored: Item) -> Written[Item]:
    """Return what a write stored, where its status depends on what there was."""
    return Written(status, msgspec.json.encode(stored))


@dataclass(frozen=True, slots=True)
class Call:
    """One authorized request."""

    services: Services
    request: Request[Any, Any, Any]
    principal: Principal
    media_type: str
    now: datetime

    @property
    def store(self) -> ControlStore:
        """The control store."""
        return self.services.store

    @property
    def tenant_id(self) -> str:
        """Whose data this request may see."""
        return self.principal.tenant_id

    @property
    def serving(self) -> Serving:
        """The published versions of the tenant's shard."""
        return self.services.shards.of(self.principal.shard, self.principal.shard_version)

    @property
    def is_tabular(self) -> bool:
        """Whether rows are asked for in a tabular form."""
        return self.media_type != media_types.JSON

    def position(self, cursor: str | None, form: type[Key]) -> Position | None:
        """Return where the request's cursor goes on, by keys of this form; None without one.

        Raises:
            ApiError: 400, not a cursor of this collection; 410, one of another epoch.
        """
        if cursor is None:
            return None
        scope = cursor_scope(self.request, self.tenant_id, self.now)
        found = self.services.cursor_cipher().decrypt(scope, self.serving.epoch(), cursor, form)
        # Another node may have answered from a newer version than this one has.
        self.serving.catch_up(found.version)
        return found

    def moment(self, text: str | None, parameter: str = "asOf") -> Moment | None:
        """Return the moment that a parameter asks about; None for the newest covered block. Errors as `read_moment`."""
        return read_moment(text, self.now, parameter)

    def snapshot(self, position: Position | None = None) -> AbstractContextManager[Snapshot]:
        """Open the version a cursor is pinned to, or the one in force."""
        return self.serving.snapshot(position.version if position else None)

    def page(self, snapshot: Snapshot | None, fetched: Fetched[Any], limit: int) -> Page:
        """Return the page's description; configuration alone has no snapshot."""
        if fetched.after is None:
            return Page(limit=limit, next_cursor=None)
        scope = cursor_scope(self.request, self.tenant_id, self.now)
        position = Position(snapshot.version if snapshot else 0, fetched.after, fetched.delivered)
        epoch = snapshot.epoch if snapshot else self.serving.epoch()
        return Page(limit=limit, next_cursor=self.services.cursor_cipher().encrypt(scope, epoch, position))

    def rank_page(self, snapshot: Snapshot, fetched: Fetched[Any], limit: int, position: Position | None) -> Page:
        """Return a page of a collection with ranks, and pin the version that the ranks belong to.

        The pin is recorded after the handler has returned.

        Raises:
            ApiError: 503, as `Pins.hold`.
        """
        if position is not None or fetched.after is not None:
            record = self.services.shards.pins_of(self.principal.shard).hold(
                snapshot.version, self.tenant_id, is_new=position is None
            )
            if record is not None:
                self.request.scope["state"][PENDING_WRITE] = record
        return self.page(snapshot, fetched, limit)

    def tabular(
        self,
        snapshot: Snapshot | None,
        row_type: type[Item],
        fetch: Fetch[Item],
        answer: Schema,
        subject: SubjectRow | None = None,
        label: str | None = None,
        state: object = None,
        *,
        reads_columns: bool = False,
    ) -> Tabular[Item]:
        """Return all rows of a collection.

        Args:
            snapshot: which they are read from; None: from configuration alone.
            row_type: struct of every row.
            fetch: reads them.
            answer: what JSON would answer; its rows and its page do not matter.
            subject: the token or wallet that the rows are of.
            label: as of `Tabular`; by default the id in the path.
            state: as of `Tabular`.
            reads_columns: whether `fetch` returns columns.
        """
        version, data_version = (snapshot.version, snapshot.data_version(self.tenant_id)) if snapshot else (None, None)
        context = FileContext(answer, subject)
        count = self.services.batch_size(reads_columns=reads_columns)
        return Tabular(version, data_version, row_type, fetch, count, context, label, state)

    def respond(self, found: Schema | Tabular[Any] | Written[Any] | None, operation: RouteSpec) -> Response[Any]:
        """Make the answer of what a handler found; 304 where the client has it already."""
        match found:
            case None:
                return Response(b"", status_code=204, media_type=media_types.JSON, headers=NO_STORE)
            case Written(status, content, headers):
                sent = {**headers, **NO_STORE}
                return Response(content, status_code=status, media_type=media_types.JSON, headers=sent)
            case Tabular():
                return self._respond_in_rows(found)
        content = msgspec.json.encode(found)
        if self.request.method != "GET" or not operation.is_conditional:
            return Response(content, status_code=operation.status, media_type=media_types.JSON, headers=NO_STORE)
        etag = f'"{self._identity(media_types.JSON, hashlib.sha256(content).hexdigest())}"'
        headers = {"ETag": etag, **_CACHING, **self._link(getattr(found, "page", None))}
        if self._has(etag):
            return Response(b"", status_code=304, media_type=media_types.JSON, headers=headers)
        return Response(content, media_type=media_types.JSON, headers=headers)

    def _respond_in_rows(self, found: Tabular[Any]) -> Response[Any]:
        asked = [self.request.scope["path"], dated_items(self.request, self.now)]
        etag = f'W/"{self._identity(self.media_type, found.data_version, found.state, asked)}"'
        headers = {"ETag": etag, **_CACHING}
        if self._has(etag):
            return Response(b"", status_code=304, media_type=self.media_type, headers=headers)
        # Every batch is read from the same version.
        batches = read_batches(self.serving, found.version, found.fetch, found.batch_rows)
        headers |= found.context.headers() | formats.attachment(self._file_name(found))
        form = context_form(self.request)
        return formats.stream_rows(self.media_type, found.row_type, batches, headers, found.context, form)

    def batches(self, version: int | None, fetch: Fetch[Item]) -> Generator[Sequence[Item]]:
        """Read all rows of one version; arguments as of `read_batches`."""
        return read_batches(self.serving, version, fetch, self.services.batch_rows)

    def _file_name(self, found: Tabular[Any]) -> str:
        identifiers = [str(value) for value in self.request.path_params.values()]
        label = found.label or (identifiers[-1] if identifiers else None)
        template = self.request.scope.get("path_template", "")
        return found.context.file_name(label, media_types.EXTENSIONS[self.media_type], template)

    def _link(self, page: Page | None) -> dict[str, str]:
        if page is None or page.next_cursor is None:
            return {}
        kept = [(name, value) for name, value in dated_items(self.request, self.now) if name != "cursor"]
        query = urlencode([*kept, ("cursor", page.next_cursor)])
        return {"Link": f'<{self.request.scope["path"]}?{query}>; rel="next"'}

    def write_once(
        self, status: int, work: Callable[[Session], Item], location: Callable[[str], str] | str
    ) -> Written[Item]:
        """Do a POST's work in one transaction with its Idempotency-Key, or replay the first answer.

        Args:
            status: of success.
            work: makes the object and returns it.
            location: path of what was made; where it is made from an id, the answer has an `id`.

        Raises:
            ApiError: 422, the key was used for another request.
        """
        key = self.request.headers.get("idempotency-key")
        body_hash = self.request.scope["state"].get("body_hash", _NO_BODY)
        method, path = self.request.method, self.request.scope["path"]
        is_replayed = False
        with self.store.write() as session:
            record = None if key is None else idempotency.find(session, self.tenant_id, key)
            if record is not None:
                if (record.method, record.path, record.body_hash) != (method, path, body_hash):
                    detail = "this Idempotency-Key was used for another request in the last 24 hours; use a new one"
                    error = FieldError(parameter="Idempotency-Key", code="reused", detail=detail)
                    raise ApiError(422, "idempotency-key-reused", detail, errors=[error])
                status, content, is_replayed = record.status, record.response_body, True
            else:
                content = msgspec.json.encode(work(session))
                if key is not None:
                    idempotency.store(
                        session,
                        self.tenant_id,
                        key,
                        method=method,
                        path=path,
                        body_hash=body_hash,
                        status=status,
                        response_body=content,
                    )
        path_made = location if isinstance(location, str) else location(_id_of(content))
        headers = {"Location": path_made}
        if is_replayed:
            headers["Idempotency-Replayed"] = "true"
        return Written(status, content, headers)

    def _identity(self, *representation: object) -> str:
        """Return what an answer's ETag says: whose it is, of which epoch and configuration, and what it shows."""
        parts = [self.tenant_id, self.serving.epoch(), self.principal.revision, *representation]
        return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:32]

    def _has(self, etag: str) -> bool:
        sent = self.request.headers.get("if-none-match")
        if sent is None:
            return False
        return sent.strip() == "*" or etag.removeprefix("W/") in {
            part.strip().removeprefix("W/") for part in sent.split(",")
        }


def read_batches(serving: Serving, version: int | None, fetch: Fetch[Item], count: int) -> Generator[Sequence[Item]]:
    """Read all rows of one version, or of none, as the client takes them.

    Args:
        serving: where versions are.
        version: which; None: what is read is in the control store.
        fetch: reads one batch.
        count: rows of a batch.
    """
    after: Key | None = None
    with nullcontext() if version is None else serving.snapshot(version) as snapshot:
        while True:
            fetched = fetch(snapshot, after, count)
            if snapshot is not None:
                # Who reads slowly holds the version, but none of its memory.
                snapshot.release()
            yield fetched.rows
            if fetched.after is None:
                return
            after = fetched.after


class _Identified(msgspec.Struct):
    id: str


def _id_of(content: bytes) -> str:
    return msgspec.json.decode(content, type=_Identified).id


# Of requests whose body nobody reads.
_NO_BODY = hashlib.sha256(b"").hexdigest()

_CACHING = {"Cache-Control": "private, no-cache", "Vary": "Accept, Authorization"}
