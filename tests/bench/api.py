"""The API over a 100,000-holder cap table and a wallet with 100,000 activities: latency of first pages, throughput."""

import http.client
import json
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import psutil

from tests.bench.measurement import Measurement
from tests.bench.workload import instant_of, new_service, run_cycle, running_world, track
from tests.chain.process import stop_process, tied_to_parent
from tests.chain.world import World, call_data, holder_at
from tests.e2e.client import ApiClient
from tests.e2e.service import LEDGERMART, Service, ServiceError

_HOLDERS = 100_000
_PER_BLOCK = 1_000
_OTHER_TOKENS = 20
_PAGE_ROWS = 50
_GAS_PER_TRANSFER = 60_000
_REQUESTS = 2_000
_WARM_UP = 50
_CLIENTS = 8
_REQUESTS_PER_CLIENT = 250
_REPEAT = 3
_READY_WITHIN_SECONDS = 60.0
_MIB = 2**20


_GOALS = {"p50": "below 10", "p99": "below 50"}


@dataclass(frozen=True)
class _Page:
    """One measured request: its path, and under which property it must answer how many rows."""

    path: str
    property: str
    rows: int


def run(folder: Path, repeat: int | None, note: Callable[[str], None], measured: list[Measurement]) -> None:
    """Collect and publish from a real chain once, then measure `repeat` rounds of requests."""

    def add(quantity: str, unit: str, value: float, goal: str = "") -> None:
        measured.append(Measurement("api", quantity, unit, value, goal))

    data = folder / "api"
    with running_world(_HOLDERS // _PER_BLOCK + 1) as world:
        note(f"api: filling a chain with {_HOLDERS:,} holders")
        service, key = new_service(data, world.node.url, {"LEDGERMART_RATE_LIMIT_PER_MINUTE": "10000000"})
        pages = _fill(world, service, key)
        note("api: collecting, building and publishing")
        run_cycle(service)
    with _running_api(service, data) as (process, start_seconds):
        add("start of the process to ready", "s", start_seconds)
        for number in range(repeat or _REPEAT):
            note(f"api: round {number + 1}")
            for name, page in pages.items():
                seconds = _ask_alone(service.api_url, key, page)
                for quantity, value in _spread(seconds).items():
                    add(f"{name}: {quantity}", "ms", value * 1000, _GOALS.get(quantity, ""))
            throughput, seconds = _ask_together(service.api_url, key, [*pages.values()])
            add(f"{_CLIENTS} clients together, mixed: answers", "1/s", throughput)
            for quantity, value in _spread(seconds).items():
                add(f"{_CLIENTS} clients together, mixed: {quantity}", "ms", value * 1000)
        add("resident memory after all rounds", "MiB", psutil.Process(process.pid).memory_info().rss / _MIB)


def _fill(world: World, service: Service, key: str) -> dict[str, _Page]:
    """Make a token with many holders, paid by one wallet that also holds other tokens; track both."""
    token = world.deploy_token("BENCH", 18)
    others = [world.deploy_token(f"OTHER{number}", 18) for number in range(_OTHER_TOKENS)]
    first = world.node.head() + 1
    for number, other in enumerate(others):
        world.transfer(other, world.deployer, holder_at(number), 10**18)
    world.mine()
    for start in range(0, _HOLDERS, _PER_BLOCK):
        # Blocks differ in amount, so that ranks do not only depend on addresses.
        amount = (start + 1) * 10**15
        data = call_data("TestToken", "emit_many", _PER_BLOCK, amount, start)
        world.submit(world.deployer, token.address, data, gas=_GAS_PER_TRANSFER * _PER_BLOCK)
        world.mine()
    opened_at = instant_of(world.node, first)
    ids = track(service, key, "local", {token: opened_at}, {world.deployer: opened_at})
    wallet = f"/v1/wallets/{ids[world.deployer]}"
    return {
        "cap table": _Page(f"/v1/tokens/{ids[token.address]}/cap-table", "data", _PAGE_ROWS),
        "wallet activities": _Page(f"{wallet}/activities", "data", _PAGE_ROWS),
        "wallet balances": _Page(f"{wallet}/balances", "current", _OTHER_TOKENS + 2),
    }


@contextmanager
def _running_api(service: Service, data: Path) -> Iterator[tuple[subprocess.Popen[bytes], float]]:
    """`ledgermart api` by itself, and how long it took to be ready."""
    with (data / "api.log").open("wb") as log:
        begun = time.perf_counter()
        process = subprocess.Popen(
            tied_to_parent([str(LEDGERMART), "api"]),
            env=service.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        with ApiClient(service.api_url) as client:
            while not client.is_ready():
                if process.poll() is not None or time.perf_counter() - begun > _READY_WITHIN_SECONDS:
                    raise ServiceError(f"`ledgermart api` is not ready:\n{(data / 'api.log').read_text()[-4000:]}")
                time.sleep(0.02)
        yield process, time.perf_counter() - begun
    finally:
        stop_process(process, grace_seconds=15)


class _Client:
    """A thin client with one kept-alive connection, so that the server dominates the measured time."""

    def __init__(self, url: str, key: str) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"))
        self._headers = {"Authorization": f"Bearer {key}"}

    def ask(self, pages: Sequence[_Page]) -> list[float]:
        """Request the pages one after the other and return the seconds of each, from sending to the last byte."""
        seconds = []
        for page in pages:
            begun = time.perf_counter()
            self._connection.request("GET", page.path, headers=self._headers)
            response = self._connection.getresponse()
            body = response.read()
            seconds.append(time.perf_counter() - begun)
            if response.status != 200:
                raise RuntimeError(f"GET {page.path}: {response.status} {body[:500]!r}")
        rows = len(json.loads(body)[page.property])
        if rows != page.rows:
            raise RuntimeError(f"GET {page.path}: {rows} rows, not {page.rows}")
        return seconds

    def close(self) -> None:
        self._connection.close()


def _ask_alone(url: str, key: str, page: _Page) -> list[float]:
    """Repeat one client's request for a page; return the seconds of each answer after a warm-up."""
    with closing(_Client(url, key)) as client:
        client.ask([page] * _WARM_UP)
        return client.ask([page] * _REQUESTS)


def _ask_together(url: str, key: str, pages: Sequence[_Page]) -> tuple[float, list[float]]:
    """Let several clients request the pages in turn; return answers per second, and the seconds of each."""
    asked = [*pages] * (_REQUESTS_PER_CLIENT // len(pages))

    def ask_all(_: int) -> list[float]:
        with closing(_Client(url, key)) as client:
            return client.ask(asked)

    begun = time.perf_counter()
    with ThreadPoolExecutor(_CLIENTS) as pool:
        seconds = list(chain.from_iterable(pool.map(ask_all, range(_CLIENTS))))
    return len(seconds) / (time.perf_counter() - begun), seconds


def _spread(seconds: list[float]) -> dict[str, float]:
    hundredths = statistics.quantiles(seconds, n=100, method="inclusive")
    return {"p50": hundredths[49], "p99": hundredths[98], "slowest": max(seconds)}
