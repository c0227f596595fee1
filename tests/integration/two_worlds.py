"""Two services with the same cycles over one chain: tenant B is alone in the first and has a neighbour in the second.

Clock, ids and secrets are injected: both services see the same time, and B's objects have the same ids in both. So B
must get the same answers from both, including all headers; `LEFT_OUT` lists the exceptions.
"""

import csv
import io
import itertools
import json
import random
import re
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from unittest import mock

import httpx
import polars as pl
from litestar.testing import TestClient

from api.app import create_app
from api.http import media_types
from control.access import Principal
from control.settings import Settings
from pipelines.attestations.collecting import Periods
from pipelines.deliver.operations import report_discoveries, report_requests
from pipelines.raw.builds import newest_publication, record_publication, record_transform
from pipelines.raw.database import open_warehouse
from pipelines.tenants.versions import advance
from tests.api.document import DOCUMENT
from tests.chain.fault_proxy import FaultProxy, HttpFault
from tests.chain.http_server import Reply
from tests.chain.node import AnvilNode
from tests.chain.world import World, call_data
from tests.integration.dbt_runner import WITHOUT_VIEWS, Stores, build_over_nothing, run_dbt
from tests.integration.harness import LocalNetwork
from tests.integration.price_service import PriceService
from tests.oracles.node import instant
from tests.prices.exchange_server import ExchangeServer
from tests.prices.model import ScriptedMarket, wandering
from warehouse.versions import publish

LEFT_OUT: Final = frozenset(
    {
        # Unique to each answer, or derived from its body.
        *("date", "x-request-id", "requestId", "ratelimit", "ratelimit-policy", "content-length"),
        # Times and speed of operations, and times of publications.
        *("startedAt", "finishedAt", "updatedAt", "rate", "estimatedEnd", "publishedAt"),
        # Health of networks and sources: it belongs to the installation, not to a tenant.
        *("statusSince", "probedAt", "lastPoll"),
    }
)
"""Headers (in lower case) and fields that may differ between the two services."""

OPERATIONS: Final[Mapping[str, tuple[str, str, dict[str, Any]]]] = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
"""Method, path and description by operation id."""

# List and field with the values of each path parameter; objects that belong to another one are listed below it.
_LISTED = {
    "tokenId": ("/v1/tokens", "id"),
    "walletId": ("/v1/wallets", "id"),
    "name": ("/v1/networks/ledgers", "name"),
    "symbol": ("/v1/priced-items", "symbol"),
    "id": ("/v2/price-sources", "id"),
}
_TABULAR = (media_types.CSV, media_types.NDJSON, media_types.PARQUET)
_CURSOR = re.compile(r"cursor=[^&>]+")
# Some days end in the history, others during the test.
_BLOCK_SECONDS = 3_600
_ATTESTED = Periods("day", 10_000)
_SECOND = timedelta(seconds=1)

Query = Mapping[str, str]


class _Clock:
    """The current time of both services, the exchanges and the reports."""

    def __init__(self) -> None:
        self.now = datetime(2023, 1, 1, tzinfo=UTC)
        clock = self

        class Clocked(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
                return clock.now if tz is not None else clock.now.replace(tzinfo=None)

        self.patches = [mock.patch(f"{name}.datetime", Clocked) for name in ("control.clock", "jwt.api_jwt")]

    def reach(self, moment: datetime) -> None:
        """Advance by a second, or to a moment if that is later."""
        self.now = max(self.now + _SECOND, moment)


@contextmanager
def _chance(step: int, who: int) -> Iterator[None]:
    """Derive ids and secrets from the tenant and the step instead of from clock and randomness."""
    text = f"{step:032x}{who:032x}"
    drawn = SimpleNamespace(
        token_hex=lambda size: text[: size * 2].ljust(size * 2, "0"),
        token_bytes=lambda size: text.encode()[:size],
        token_urlsafe=lambda _: text,
    )
    numbers = itertools.count()
    with ExitStack() as stack:
        for name in ("control.access", "control.store", "api.reports.tokens"):
            stack.enter_context(mock.patch(f"{name}.secrets", drawn))
        # 26 characters that sort by step.
        stack.enter_context(
            mock.patch("control.ids.new_id", lambda prefix: f"{prefix}{step:010d}{who:08d}{next(numbers):08d}")
        )
        yield


@dataclass(frozen=True)
class Answer:
    """The answer of one service."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def facts(self) -> tuple[int, Any, Any]:
        """The compared parts: all but `LEFT_OUT`, and without the ETag if the body has fields from `LEFT_OUT`."""
        headers, body = (
            _kept({name: _CURSOR.sub("cursor=", text) for name, text in self.headers.items()}),
            _kept(self.body),
        )
        if body != self.body:
            headers.pop("etag", None)
        return self.status, headers, body


def _kept(answer: Any) -> Any:
    if isinstance(answer, dict):
        kept = {name: value for name, value in answer.items() if name not in LEFT_OUT}
        return {name: _kept(value and "" if name == "nextCursor" else value) for name, value in kept.items()}
    return [_kept(value) for value in answer] if isinstance(answer, list) else answer


def _differences(alone: Any, beside: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield place and both values of each difference between two answers."""
    if isinstance(alone, dict) and isinstance(beside, dict):
        for name in alone.keys() | beside.keys():
            yield from _differences(alone.get(name), beside.get(name), f"{where}/{name}")
    elif isinstance(alone, list | tuple) and isinstance(beside, list | tuple) and len(alone) == len(beside):
        for position, pair in enumerate(zip(alone, beside, strict=True)):
            yield from _differences(*pair, f"{where}/{position}")
    elif isinstance(alone, list) and isinstance(beside, list):
        yield f"{where}/length", len(alone), len(beside)
        yield from _differences(alone[:1], beside[:1], where)
    elif alone != beside:
        yield where, alone, beside


def _read(answer: httpx.Response) -> Answer:
    form = answer.headers.get("content-type", "").partition(";")[0]
    body: Any = answer.text
    if form == media_types.NDJSON:
        body = [json.loads(line) for line in answer.text.splitlines()]
    elif form.endswith("json") and answer.content:
        body = answer.json()
    elif form == media_types.CSV:
        # With `context=comment` the first line is JSON behind a `#`.
        comment, text = answer.text.split("\n", 1) if answer.text.startswith("# ") else ("# null", answer.text)
        body = [json.loads(comment.removeprefix("# ")), *csv.DictReader(io.StringIO(text))]
    elif form == media_types.PARQUET:
        body = pl.read_parquet(io.BytesIO(answer.content)).to_dicts()
    return Answer(answer.status_code, {name.lower(): text for name, text in answer.headers.items()}, body)


class Tenant:
    """A tenant that makes each request in all of its services, and compares their answers.

    Args:
        refused: operations that may answer with an error.
    """

    def __init__(
        self, worlds: "Worlds", name: str, who: int, services: Sequence[PriceService], refused: Collection[str]
    ) -> None:
        self._worlds = worlds
        self._who = who
        self._refused = refused
        self._steps = 1
        self._clients: list[TestClient[Any]] = []
        # Ids of created objects, by path.
        self.made: defaultdict[str, list[str]] = defaultdict(list)
        # Operations called so far.
        self.called: set[str] = set()
        for service in services:
            with _chance(0, who):
                principal: Principal = service.tenant(name)
            client = worlds.stack.enter_context(TestClient(create_app(service.settings)))
            with _chance(1, who):
                client.headers["Authorization"] = f"Bearer {service.bearer(principal)}"
            self._clients.append(client)

    def do(
        self,
        operation_id: str,
        *values: str,
        body: Any = None,
        query: Query | None = None,
        bearer: str | None = None,
        form: Mapping[str, str] | None = None,
    ) -> Any:
        """Call an operation with the values of its path parameters; return the body of its answer."""
        method, template, _ = OPERATIONS[operation_id]
        for value in values:
            template = re.sub(r"\{\w+\}", value, template, count=1)
        self._worlds.go_on()
        self._steps += 1
        headers = {} if bearer is None else {"Authorization": f"Bearer {bearer}"}
        sent = {"json": body} if body is not None else {"data": form} if form is not None else {}
        answer = self._same(method, template, params=query, headers=headers, **sent)
        assert answer.status < 400 or operation_id in self._refused, (operation_id, body, answer)
        self.called.add(operation_id)
        if isinstance(answer.body, dict) and "id" in answer.body:
            self.made[template].append(answer.body["id"])
        return answer.body

    def get(self, path: str, query: Query, accept: str = media_types.JSON, bearer: str | None = None) -> Answer:
        """Send a GET request."""
        headers = {"Accept": accept} | ({} if bearer is None else {"Authorization": f"Bearer {bearer}"})
        return self._same("GET", path, params=query, headers=headers)

    def _same(self, method: str, path: str, **sent: Any) -> Answer:
        answers = [self._ask(client, method, path, sent) for client in self._clients]
        assert answers[0].status < 500 or "superset" in path, (method, path, answers[0])
        self._compare(answers, method, path, sent["params"])
        if isinstance(answers[0].body, dict) and answers[0].body.get("page", {}).get("nextCursor"):
            self._walk(path, answers, sent)
        return answers[-1]

    def _compare(self, answers: Sequence[Answer], *asked: object) -> None:
        beside, alone = answers[0].facts, answers[-1].facts
        self._worlds.differences += [(*asked, *found) for found in _differences(alone, beside)]

    def await_version(self, settings: Settings, version: int) -> None:
        """Wait until the applications serve the published version; they check for it several times a second."""
        for client in self._clients:
            state = client.app.state
            while state.settings is settings and state.services.shards.of(0).in_force().version != version:
                time.sleep(0.01)

    def _ask(self, client: TestClient[Any], method: str, path: str, sent: Mapping[str, Any]) -> Answer:
        with _chance(self._steps, self._who):
            return _read(client.request(method, path, follow_redirects=False, **sent))

    def _walk(self, path: str, answers: Sequence[Answer], sent: Mapping[str, Any]) -> None:
        """Follow the cursors of all services to the last page."""
        cursors = [answer.body["page"]["nextCursor"] for answer in answers]
        while cursors[0]:
            params = [{**(sent["params"] or {}), "cursor": cursor} for cursor in cursors]
            pages = [
                self._ask(client, "GET", path, {**sent, "params": query})
                for client, query in zip(self._clients, params, strict=True)
            ]
            self._compare(pages, "GET", path, params[0])
            cursors = [page.body["page"]["nextCursor"] for page in pages]


class Worlds:
    """The chain, the exchanges, and both services.

    Attributes:
        alone: the service with B alone.
        beside: the service with A and B.
        differences: different answers to B: method, path, query, place in the answer, value alone, value beside A.
    """

    def __init__(self, node: AnvilNode, folder: Path, stack: ExitStack) -> None:
        self.node, self.stack, self.clock = node, stack, _Clock()
        self.differences: list[tuple[object, ...]] = []
        for patch in self.clock.patches:
            stack.enter_context(patch)
        stack.enter_context(
            mock.patch("warehouse.versions.uuid", SimpleNamespace(uuid4=lambda: SimpleNamespace(hex="e")))
        )
        self.chain = World(node, wallet_count=8, gas_price=10**9, seed=5, block_seconds=_BLOCK_SECONDS)
        self.chain.place_multicall()
        self.gold = self.chain.deploy_token("GOLD", 18)
        self.coin = self.chain.deploy_token("COIN", 6)
        self.hush = self.chain.deploy_token("HUSH", 6)
        self.tokens = [self.gold, self.coin, self.hush]
        for token in self.tokens:
            self.chain.distribute(token, 1_000_000)
        self.traffic(6)
        # Blocks are final at a depth of 64.
        for _ in range(70):
            self.chain.mine()
        self.proxy = stack.enter_context(FaultProxy(node.url))
        markets = [ScriptedMarket(*pair, wandering("100.5", seed)) for seed, pair in enumerate(_MARKETS)]
        self.exchanges = stack.enter_context(ExchangeServer(markets, now=lambda: self.clock.now))
        fields = {"requests_per_second": 1000, "max_attempts": 1, "timeout_seconds": 60}
        definitions = self.exchanges.write_definitions(folder / "sources.toml", ("kraken", "coinbase", "ecb"), **fields)
        network = LocalNetwork("local", self.proxy.url, common_tokens=[("COIN", self.coin.address, 6)])
        settings = {"LEDGERMART_RATE_LIMIT_PER_MINUTE": "10000000"}
        made = []
        for name in ("alone", "beside"):
            with _chance(0, 0):
                made.append(PriceService(folder / name, definitions, network, settings=settings))
            stack.callback(made[-1].close)
            build_over_nothing(made[-1].settings.data_dir)
        self.alone, self.beside = made
        self.a = Tenant(self, "a", 1, [self.beside], OPERATIONS.keys())
        self.b = Tenant(self, "b", 2, self.services, {"make_guest_token"})
        self.cycle()
        self.publish()

    @property
    def services(self) -> tuple[PriceService, PriceService]:
        """Both services."""
        return self.beside, self.alone

    def moment(self, block: int) -> str:
        """Return the time of a block in the API's format."""
        return f"{instant(self.node, block):%Y-%m-%dT%H:%M:%SZ}"

    def traffic(self, count: int) -> int:
        """Mine some blocks of transfers among the wallets; return the newest block."""
        self.chain.transfer_many(count, self.tokens, per_block=3)
        self.chain.submit(*self.chain.wallets[:2], value=10**15)
        return self.chain.mine()

    def go_on(self) -> None:
        """Advance the clock by a second, or to the newest block's time if that is later."""
        self.clock.reach(instant(self.node, self.node.head()))

    def mint_silently(self, holder: str) -> None:
        """Credit a holder without an event in the next block."""
        self.chain.submit(
            self.chain.deployer, self.hush.address, call_data("TestToken", "mint_silently", holder, 7, False)
        )

    def cycle(self, *, fails: Collection[str] = ()) -> None:
        """Run a cycle of both services at the same head; complete all histories, attestations and discoveries.

        Args:
            fails: names of failing sources: `node`, or an exchange.
        """
        fault = HttpFault(status=503)
        for name in fails:
            if name == "node":
                self.proxy.inject(fault)
            else:
                self.exchanges.always_reply(name, Reply(status=503))
        self.go_on()
        for service in self.services:
            report = service.cycle()
            assert (report.error is not None) == ("node" in fails), report.error
            service.price_cycle()
            if "node" not in fails:
                service.history()
                service.attest(_ATTESTED)
            service.price_slot()
        for name in fails:
            if name == "node":
                self.proxy.withdraw(fault)
            else:
                self.exchanges.always_reply(name, None)

    def publish(self) -> None:
        """Build and publish the marts of both."""
        for service in self.services:
            settings = service.settings
            stores = Stores(settings.data_dir)
            with open_warehouse(settings.warehouse_path) as connection:
                advance(connection, newest_publication(connection), settings.as_of_seconds)
            run_dbt(stores, "run", "--exclude", *WITHOUT_VIEWS)
            shutil.copyfile(stores.marts, settings.marts_path)
            with open_warehouse(settings.warehouse_path) as connection:
                (batch,) = connection.execute("select max(batch_id) from raw.batches").fetchone() or (0,)
                record_transform(connection, batch, "test")
                version = publish(settings.marts_path, settings.serving_dir, batch).version
                record_publication(connection, version, batch)
                report_requests(connection, service.store, service.settings.shard)
                report_discoveries(connection, service.store, service.settings.shard)
            for tenant in (self.a, self.b):
                tenant.await_version(settings, version)

    def read_everything(self, draw: random.Random, most: int) -> None:
        """Have B call every GET operation for each of its objects, and for one of A's.

        Args:
            draw: source of randomness for the choice of queries.
            most: random queries per operation and object, besides the plainest one.
        """
        head = self.node.head()
        moments = {block: self.moment(block) for block in range(head - 30, head + 1, 5)}
        for operation_id, (method, template, operation) in OPERATIONS.items():
            if method != "GET":
                continue
            for path, given, bearer in self._addresses(template, operation):
                asked = list(_queries(operation, moments, self.chain.wallets[1]))
                for query, accept in asked[:1] + draw.sample(asked[1:], min(most, len(asked) - 1)):
                    if self.b.get(path, {**given, **query}, accept, bearer).status < 400:
                        self.b.called.add(operation_id)
        assert not self.differences, "\n".join(str(one)[:600] for one in self.differences[:200])

    def _addresses(self, template: str, operation: dict[str, Any]) -> Iterator[tuple[str, Query, str | None]]:
        """Yield path, required query and token of an operation for each of B's objects."""
        if template.startswith("/embed/"):
            report = template.split("/")[3]
            for link in self.links() if report != "index" else [self.link("link_index")]:
                if link[0] == report or report == "index":
                    yield template, {}, link[1]
            return
        required = [
            name["name"] for name in operation["parameters"] if name["in"] == "query" and name.get("required", False)
        ]
        names = [parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "path"]
        for path in self._filled(template, names):
            if "from" in required:
                yield path, {"from": self.moment(self.node.head() - 20)}, None
            elif required:
                for value in self._ids(required[0], path):
                    yield path, {required[0]: value}, None
            else:
                yield path, {}, None

    def _filled(self, template: str, names: Sequence[str]) -> Iterator[str]:
        paths = [template]
        for name in names:
            paths = [path.replace(f"{{{name}}}", value, 1) for path in paths for value in self._ids(name, path)]
        yield from paths

    def _ids(self, name: str, path: str) -> list[str]:
        """Return a parameter's values: all of B's objects, and one of A's."""
        where, field = _LISTED.get(name, (path.split("/{")[0], "id"))
        own, foreign = (
            # Some lists do not contain the operations below them.
            [str(row[field]) for row in tenant.get(where, {}).body.get("data", []) if field in row]
            or tenant.made[where]
            for tenant in (self.b, self.a)
        )
        return own + [name for name in foreign if name not in own][:1]

    def links(self) -> list[tuple[str, str]]:
        """Return report and token of a link to each of B's reports at covered moments."""
        before = {"from": self.moment(self.node.head() - 20)}
        return [
            self.link(operation_id, **query)
            for operation_id, name, where, moments in (
                ("link_cap_table", "tokenId", "/v1/tokens", {}),
                ("link_cap_table_changes", "tokenId", "/v1/tokens", before),
                ("link_wallet_activity", "walletId", "/v1/wallets", {}),
            )
            for row in self.b.get(where, {}).body["data"]
            if self.b.get(OPERATIONS[operation_id][1], query := {name: row["id"], **moments}).status < 400
        ]

    def link(self, operation_id: str, **query: str) -> tuple[str, str]:
        """Create a link; return its report and token."""
        made = self.b.do(operation_id, query=query)
        return OPERATIONS[operation_id][1].rpartition("/")[2], made["reportUrl"].partition("#t=")[2]


_MARKETS = [("BTC", "USD"), ("ETH", "USD"), ("EUR", "USD")]


def _queries(operation: dict[str, Any], moments: Mapping[int, str], wallet: str) -> Iterator[tuple[Query, str]]:
    """Yield queries of an operation, each with the media type to request; the plainest one first."""
    schemas = {one["name"]: one["schema"] for one in operation["parameters"] if one["in"] == "query"}
    contents = operation["responses"]["200"]["content"]
    json_or_csv = media_types.JSON if media_types.JSON in contents else media_types.CSV
    yield {}, json_or_csv
    for form in _TABULAR:
        if form in contents and form != json_or_csv:
            yield {}, form
    for name, schema in schemas.items():
        for value in schema.get("enum", ()):
            yield {name: value}, media_types.CSV if name == "context" else json_or_csv
    for name, values in {
        "explain": ["true"],
        "limit": ["2"],
        "offset": ["1"],
        "wallet": [wallet],
        "counterparty": [wallet],
        "q": [wallet, "G"],
        "asOf": [*moments.values(), *(f"block:{block}" for block in moments)],
        "from": moments.values(),
    }.items():
        if name in schemas:
            yield from (({name: value}, json_or_csv) for value in values)
    if {"from", "to"} <= schemas.keys():
        ends: list[Callable[[], str]] = [lambda: min(moments.values()), lambda: max(moments.values())]
        for interval in schemas.get("interval", {}).get("enum", [None]):
            chosen = {} if interval is None else {"interval": interval}
            yield {"from": ends[0](), "to": ends[1](), **chosen}, json_or_csv
