"""Embedded reports over a token with 1,000,000 holders and a wallet with 100,000 activities.

Measures the data routes one by one and together, their transferred bytes, and the time until a fresh browser shows the
whole report. A page of another origin frames the report.
"""

import http.client
import itertools
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from playwright.sync_api import Request, sync_playwright

from api.examples import EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from tests.api.marts import move_pointer
from tests.api.world import World, make_world
from tests.bench.large_report import Size, publish_large
from tests.bench.measurement import Measurement
from tests.browser.servers import Portal
from tests.browser.visitor import Visitor, launch, visiting
from tests.chain.process import free_port, stop_process, tied_to_parent
from tests.e2e.client import ApiClient

FULL = Size(holders=1_000_000, activities=100_000)
SMALL = Size(holders=2_000, activities=500)

_REPEAT = 3
_REQUESTS = 200
_CLIENTS = 8
_REQUESTS_PER_CLIENT = 100
_READY_SECONDS = 60.0
_MIB = 2**20
_RENEWED_SECONDS = 5.0
_GOALS = {
    "wire": "below 260",
    "mix": "above 200",
    "browser": "below 0.8",
    "first": "",
    "renewed": "below 150",
    "search": "below 25",
}
_SERVE = """
import sys
from api.server import serve
from control.settings import load_settings
settings = load_settings({"LEDGERMART_DATA_DIR": sys.argv[1], "LEDGERMART_NETWORKS": sys.argv[2],
                          "LEDGERMART_API_PORT": sys.argv[3], "LEDGERMART_RATE_LIMIT_PER_MINUTE": "10000000"})
serve(settings, "127.0.0.1", int(sys.argv[3]))
"""


@dataclass(frozen=True)
class _Remote:
    """The API in a separate process."""

    url: str
    world: World
    pid: int

    def client(self, who: str = "admin") -> ApiClient:
        """Return a client with the key of a caller of the world."""
        return ApiClient(self.url, self.world.keys[who])


def run(
    folder: Path, repeat: int | None, note: Callable[[str], None], measured: list[Measurement], size: Size = FULL
) -> None:
    """Make the published file once; then start the API, request all data, and open the reports, `repeat` times."""

    def add(quantity: str, unit: str, value: float, goal: str = "") -> None:
        measured.append(Measurement("reports", quantity, unit, value, goal))

    note(f"reports: making a file with {size.holders:,} holders and {size.activities:,} activities")
    world = make_world(folder)
    publish_large(world, size)
    numbers = random.Random(1)
    for turn in range(repeat or _REPEAT):
        with _running(world) as remote:
            note(f"reports: run {turn + 1}, the routes by themselves")
            tokens = _tokens(remote)
            for name, seconds in _first_answers(remote, tokens).items():
                add(f"{name}: first request of a version", "ms", seconds * 1000, _GOALS["first"])
            for name, (report, paths) in _paths(size, numbers).items():
                # A token lasts ten minutes.
                spread = statistics.quantiles(_ask(remote, _tokens(remote)[report], paths), n=100, method="inclusive")
                goal = _GOALS["search"] if "search" in name or "sorted" in name else ""
                add(f"{name}: p50", "ms", spread[49] * 1000, goal)
                add(f"{name}: p99", "ms", spread[98] * 1000)
            note(f"reports: run {turn + 1}, {_CLIENTS} clients together")
            rate, used = _ask_together(remote, _tokens(remote)["cap-table"], size)
            add(f"{_CLIENTS} clients together, rows by rank, search, summary: answers", "1/s", rate, _GOALS["mix"])
            add("processor time of the API per answer of these", "ms", used * 1000)
            _publish_again(world, turn)
            time.sleep(_RENEWED_SECONDS)
            for name, seconds in _first_answers(remote, _tokens(remote)).items():
                quantity = f"{name}: first request of a version, {_RENEWED_SECONDS:.0f} s after its publication"
                add(quantity, "ms", seconds * 1000, _GOALS["renewed"])
            begun = time.perf_counter()
            rows = _download(remote, _tokens(remote)["cap-table"])
            add("file of all holders", "rows/s", rows / (time.perf_counter() - begun))
            note(f"reports: run {turn + 1}, in the browser")
            for report, (seconds, size_of) in _look(remote).items():
                add(f"{report}: fresh browser to the whole report", "s", seconds, _GOALS["browser"])
                add(f"{report}: page, scripts, styles and first data", "kB", size_of / 1e3, _GOALS["wire"])
            add("resident memory of the API at the end", "MiB", psutil.Process(remote.pid).memory_info().rss / _MIB)
    world.store.close()


@contextmanager
def _running(world: World) -> Iterator[_Remote]:
    port = free_port()
    arguments = [str(world.settings.data_dir), str(world.settings.networks_file), str(port)]
    process = subprocess.Popen(
        tied_to_parent([sys.executable, "-c", _SERVE, *arguments]), stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        remote = _Remote(f"http://127.0.0.1:{port}", world, process.pid)
        deadline = time.monotonic() + _READY_SECONDS
        with remote.client() as client:
            while not client.is_ready():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise TimeoutError("the API did not become ready")
                time.sleep(0.05)
        yield remote
    finally:
        stop_process(process, grace_seconds=15)


def _publish_again(world: World, turn: int) -> None:
    """Publish the same rows as a new version."""
    directory = world.settings.serving_dir
    version = turn + 3
    path = directory / f"marts-{version:012d}.duckdb"
    path.write_bytes((directory / "marts-000000000002.duckdb").read_bytes())
    move_pointer(directory, version, path.name)


def _tokens(remote: _Remote) -> dict[str, str]:
    with remote.client("viewer") as client:
        links = {
            "cap-table": client.get("/v1/reports/cap-table", tokenId=EXAMPLE_TOKEN_ID),
            "wallet-activity": client.get("/v1/reports/wallet-activity", walletId=EXAMPLE_WALLET_ID),
        }
    return {report: link["reportUrl"].partition("#t=")[2] for report, link in links.items()}


def _first_answers(remote: _Remote, tokens: dict[str, str]) -> dict[str, float]:
    return {report: _ask(remote, token, [f"/embed/data/{report}/summary"])[0] for report, token in tokens.items()}


def _paths(size: Size, numbers: random.Random) -> dict[str, tuple[str, Sequence[str]]]:
    """Return report and request paths by name; requests for rows use random pages and words."""
    holders, wallet = "/embed/data/cap-table", "/embed/data/wallet-activity"

    def offsets(count: int) -> list[int]:
        return [numbers.randrange(count) for _ in range(_REQUESTS)]

    def words(length: int) -> list[str]:
        return [f"{numbers.randrange(16**length):0{length}x}" for _ in range(_REQUESTS // 4)]

    few = _REQUESTS // 4
    return {
        "cap table, summary": ("cap-table", [f"{holders}/summary"] * _REQUESTS),
        "cap table, rows by rank": (
            "cap-table",
            [f"{holders}/rows?offset={offset}" for offset in offsets(size.holders)],
        ),
        "cap table, search": ("cap-table", [f"{holders}/rows?q={word}" for word in words(4)]),
        "cap table, sorted by reconciliation": (
            "cap-table",
            [f"{holders}/rows?sort=reconciliation&offset={offset}" for offset in offsets(2_000)[:few]],
        ),
        "cap table, sorted by wallet": (
            "cap-table",
            [f"{holders}/rows?sort=wallet&offset={offset}" for offset in offsets(2_000)[:few]],
        ),
        "wallet, summary": ("wallet-activity", [f"{wallet}/summary"] * _REQUESTS),
        "wallet, rows by date": (
            "wallet-activity",
            [f"{wallet}/rows?offset={offset}" for offset in offsets(2_000)[:few]],
        ),
        "wallet, rows sorted by value": (
            "wallet-activity",
            [f"{wallet}/rows?sort=-value&offset={offset}" for offset in offsets(2_000)[:few]],
        ),
        "wallet, search": ("wallet-activity", [f"{wallet}/rows?q={word}" for word in words(4)]),
    }


def _ask(remote: _Remote, token: str, paths: Sequence[str]) -> list[float]:
    """Let one client request the paths one after the other; return the seconds of each."""
    seconds = []
    with closing(http.client.HTTPConnection(remote.url.removeprefix("http://"))) as connection:
        for path in paths:
            begun = time.perf_counter()
            _read(connection, path, {"Authorization": f"Bearer {token}"})
            seconds.append(time.perf_counter() - begun)
    return seconds


def _read(connection: http.client.HTTPConnection, path: str, headers: dict[str, str]) -> bytes:
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"GET {path}: {answer.status} {body[:300]!r}")
    return body


def _ask_together(remote: _Remote, token: str, size: Size) -> tuple[float, float]:
    """Return answers per second, and the API's processor seconds per answer, of what people do with a cap table.

    Of ten requests, seven turn pages by rank, each to another place; one searches, one of the words that others look
    for too; two are heads.
    """

    def ask_all(client: int) -> int:
        numbers = random.Random(client)
        kinds = itertools.cycle(
            ("rows", "rows", "summary", "rows", "rows", "search", "rows", "summary", "rows", "rows")
        )

        def path(kind: str) -> str:
            if kind == "rows":
                return f"rows?offset={numbers.randrange(min(size.holders, 5_000))}"
            return f"rows?q={numbers.randrange(16):x}f00" if kind == "search" else kind

        asked = [f"/embed/data/cap-table/{path(next(kinds))}" for _ in range(_REQUESTS_PER_CLIENT)]
        return len(_ask(remote, token, asked))

    process = psutil.Process(remote.pid)
    before, begun = sum(process.cpu_times()[:2]), time.perf_counter()
    with ThreadPoolExecutor(_CLIENTS) as pool:
        count = sum(pool.map(ask_all, range(_CLIENTS)))
    seconds = time.perf_counter() - begun
    return count / seconds, (sum(process.cpu_times()[:2]) - before) / count


def _download(remote: _Remote, token: str) -> int:
    """Return how many rows the file has."""
    with closing(http.client.HTTPConnection(remote.url.removeprefix("http://"))) as connection:
        connection.request("GET", "/embed/data/cap-table/csv", headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        lines = 0
        while chunk := answer.read(_MIB):
            lines += chunk.count(b"\n")
    return lines - 1


def _look(remote: _Remote) -> dict[str, tuple[float, int]]:
    """Open each report in a fresh browser profile, framed by a page of another origin.

    Returns:
        By report, the seconds from the navigation to the complete report, and the transferred bytes of the API's
        answers until then, including headers.
    """
    found: dict[str, tuple[float, int]] = {}
    with Portal(remote) as portal, remote.client() as client, sync_playwright() as playwright:  # type: ignore[arg-type]
        client.put("/v1/reports/embed-origins", {"embedOrigins": [portal.origin]})
        with launch(playwright) as browser:
            for report, subject in (
                ("cap-table", {"tokenId": EXAMPLE_TOKEN_ID}),
                ("wallet-activity", {"walletId": EXAMPLE_WALLET_ID}),
            ):
                with visiting(browser) as visitor:
                    found[report] = _open(visitor, remote, portal.page(report, **subject))
    return found


def _open(visitor: Visitor, remote: _Remote, page: str) -> tuple[float, int]:
    answered: list[Request] = []
    visitor.page.context.on("requestfinished", lambda request: answered.append(request))
    begun = time.perf_counter()
    visitor.open(page)
    seconds = time.perf_counter() - begun
    sizes = [request.sizes() for request in answered if request.url.startswith(remote.url)]
    return seconds, sum(one["responseBodySize"] + one["responseHeadersSize"] for one in sizes)
