"""Readers and writers over HTTP, the outcomes of their requests, and the writes that the service acknowledged."""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import urllib3

from tests.chain.world import holder_at
from tests.e2e.client import ApiClient, ApiError

REFUSED = "refused"
CUT = "cut off"
# A reader that waits longer counts as cut off. The service's own limit of a query is shorter.
_READ_SECONDS = 40.0
_PAUSE_SECONDS = 0.5
_WRITE_PAUSE_SECONDS = 1.0
# Wallets of the writers hold nothing: their addresses lie behind those of the chain.
_FIRST_ADDRESS = 10**9
_FIRST_PRICE_AT = datetime(2020, 1, 1, tzinfo=UTC)


class Tally:
    """Outcomes of requests since they were last taken: `ok`, `refused`, `cut off`, or status and problem code."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def count(self, outcome: str) -> None:
        """Count one request."""
        with self._lock:
            self._counts[outcome] += 1

    def take(self) -> Counter[str]:
        """Return the counts, and begin at zero."""
        with self._lock:
            taken, self._counts = self._counts, Counter()
        return taken

    @contextmanager
    def request(self) -> Iterator[None]:
        """Count the request that is made in the block; a failed one is counted and raises nothing."""
        try:
            yield
        except ApiError as error:
            self.count(outcome_of(error))
        else:
            self.count("ok")


def outcome_of(error: ApiError) -> str:
    """Return how a failed request ended."""
    if error.status == 0:
        return REFUSED if isinstance(error.__cause__, urllib3.exceptions.NewConnectionError) else CUT
    return " ".join((str(error.status), str(error.problem.get("code", "")))).strip()


@dataclass
class Tenant:
    """A tenant, the paths of its objects, and the writes that it knows to be stored.

    Attributes:
        tokens: paths of its tracked tokens, by address.
        first_blocks: of their tracking windows, by address.
        wallets: paths of its tracked wallets.
        prices: path of its manual prices.
        market: path of its pair with market prices.
    """

    name: str
    key: str
    ledger: str
    tokens: dict[str, str] = field(default_factory=dict)
    first_blocks: dict[str, int] = field(default_factory=dict)
    wallets: list[str] = field(default_factory=list)
    prices: str = ""
    market: str = ""
    stored_wallets: set[str] = field(default_factory=set)
    stored_prices: set[str] = field(default_factory=set)
    written_at: float = 0.0
    """Monotonic time at which the last write that was acknowledged began."""

    def reads(self) -> Sequence[str]:
        """Return the requests that its readers repeat."""
        return [
            "/v1/networks",
            "/v1/tokens?limit=50",
            "/v1/wallets?limit=50",
            *(f"{path}/cap-table?limit=50" for path in self.tokens.values()),
            *(f"{path}/activities?limit=50" for path in self.tokens.values()),
            *(f"{path}/balances" for path in self.wallets),
            *(f"{path}/activities?limit=50" for path in self.wallets),
            f"{self.market}/prices/history?limit=50",
        ]


class Load:
    """Two readers and a writer for each tenant; a context manager that ends them.

    Args:
        base_url: of the API.
        tenants: set up.
    """

    def __init__(self, base_url: str, tenants: Sequence[Tenant]) -> None:
        self.tally = Tally()
        self.writing = threading.Event()
        self.writing.set()
        self._base_url = base_url
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._failed: list[BaseException] = []
        for number, tenant in enumerate(tenants):
            self.add(partial(self._read, tenant))
            self.add(partial(self._read, tenant))
            self.add(partial(self._write, tenant, number))

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self.writing.set()
        for thread in self._threads:
            thread.join()

    def add(self, work: Callable[[], object]) -> None:
        """Add a thread, before the start; `check` raises its exception again."""

        def run() -> None:
            try:
                work()
            except Exception as error:  # noqa: BLE001 - raised in the main thread by `check`
                self._failed.append(error)

        self._threads.append(threading.Thread(target=run, daemon=True))

    def check(self) -> None:
        """Raise the first exception of a thread."""
        if self._failed:
            raise self._failed[0]

    def rounds(self, pause_seconds: float) -> Iterator[int]:
        """Count rounds of a thread, with a pause before each, until the load ends."""
        for number in itertools.count():
            if self._stopping.wait(pause_seconds):
                return
            yield number

    def _read(self, tenant: Tenant) -> None:
        paths = tenant.reads()
        with ApiClient(self._base_url, tenant.key, _READ_SECONDS) as client:
            for number in self.rounds(_PAUSE_SECONDS):
                with self.tally.request():
                    client.get(paths[number % len(paths)])

    def _write(self, tenant: Tenant, position: int) -> None:
        """Create a wallet and a manual price in turn; remember those that were acknowledged."""
        with ApiClient(self._base_url, tenant.key, _READ_SECONDS) as client:
            for number in self.rounds(_WRITE_PAUSE_SECONDS):
                self.writing.wait()
                begun = time.monotonic()
                with self.tally.request():
                    if number % 2:
                        at = _FIRST_PRICE_AT + timedelta(minutes=number)
                        client.post(tenant.prices, {"price": str(number), "effectiveFrom": at.isoformat()})
                        tenant.stored_prices.add(str(number))
                    else:
                        address = holder_at(_FIRST_ADDRESS * (position + 1) + number)
                        name = f"customer-{number}"
                        body = {"ledger": tenant.ledger, "ledgerId": address, "name": name, "externalId": name}
                        client.post("/v1/wallets", body)
                        tenant.stored_wallets.add(name)
                    tenant.written_at = begun


def lost_writes(client: ApiClient, tenant: Tenant) -> int:
    """Count the acknowledged writes that are missing, and rows that are there twice.

    Raises:
        ApiError: the service does not answer.
    """
    # Copies first: writers go on while pages are read.
    wallets, prices = set(tenant.stored_wallets), set(tenant.stored_prices)
    return _lost(wallets, _all(client, "/v1/wallets", "externalId")) + _lost(
        prices, _all(client, tenant.prices, "price")
    )


def _all(client: ApiClient, path: str, field_name: str) -> "Counter[Any]":
    rows = (row for page in client.pages(path, limit=200) for row in page["data"])
    return Counter(row[field_name] for row in rows if row[field_name] is not None)


def _lost(stored: set[str], shown: "Counter[Any]") -> int:
    doubled = sum(count - 1 for count in shown.values())
    return len(stored - shown.keys()) + doubled
