"""A tenant's answers are what they would be if no other tenant existed.

Two services follow one chain with the same cycles at the same heads. In one a tenant is alone; in the other another one
is active beside it. What the API answers the first one is compared, for every operation that reads; ids are the same in
both, as they are made of what the tenant did and not of the clock.
"""

import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar
from unittest import mock

import pytest
from litestar.testing import TestClient

from api.app import create_app
from control.access import Principal
from control.subjects import SubjectRow
from pipelines.deliver.operations import report_requests
from pipelines.load.state import record_publication, record_transform
from pipelines.load.warehouse import open_warehouse
from tests.api.document import DOCUMENT
from tests.chain.node import AnvilNode
from tests.chain.world import World, call_data
from tests.integration.dbt_runner import Stores, run_dbt
from tests.integration.harness import LocalNetwork, Service
from tests.integration.oracle import instant
from warehouse.versions import publish

Made = TypeVar("Made")
_LONG = [pytest.mark.long, pytest.mark.timeout(1800)]

# What no tenant is told as if alone: when and how fast things were done, the installation's health, its versions.
_LEFT_OUT = frozenset(
    {
        *("createdAt", "updatedAt", "requestedAt", "startedAt", "finishedAt", "occurredAt", "lastUsedAt"),
        *("requestId", "rate", "blocksPerSecond", "estimatedEnd", "dataVersion"),
        *("statusSince", "probedAt", "polledAt"),
    }
)
# Pages, and what is asked for with a token of its own.
_NOT_ASKED = ("/embed/", "/health/", "/v1/reports", "/v1/audit-events")
# Where the values of an operation's path parameters are listed.
_LISTED = {
    "tokenId": ("/v1/tokens", "id"),
    "walletId": ("/v1/wallets", "id"),
    "name": ("/v1/networks/ledgers", "name"),
    "symbol": ("/v1/priced-items", "symbol"),
    "id": ("/v2/price-sources", "id"),
}
_MOMENTS = ("block:{block}", "{time}")


class Worlds:
    """One chain, the service in which tenant B is alone, and the one in which A is beside it."""

    def __init__(self, node: AnvilNode, folder: Path) -> None:
        self.node = node
        self.chain = World(node, wallet_count=8, gas_price=10**9, seed=5)
        self.chain.place_multicall()
        self.gold = self.chain.deploy_token("GOLD", 18)
        self.coin = self.chain.deploy_token("COIN", 6)
        self.hush = self.chain.deploy_token("HUSH", 6)
        self.tokens = [self.gold, self.coin, self.hush]
        for token in self.tokens:
            self.chain.distribute(token, 1_000_000)
        self.traffic(6)
        # The node calls what is 64 blocks old final.
        for _ in range(70):
            self.chain.mine()
        networks = [LocalNetwork("local", node.url, common_tokens=[("COIN", self.coin.address, 6)])]
        self.alone, self.beside = Service(folder / "alone", networks), Service(folder / "beside", networks)
        self._steps = 0
        self._b: Principal | None = None
        self.subjects: dict[str, dict[Service, SubjectRow]] = {}
        with _ids(0):
            self.a = self.beside.tenant("a")
        (self._b,) = set(self.both(lambda service: service.tenant("b")).values())

    @property
    def b(self) -> Principal:
        """The tenant whose answers are compared."""
        assert self._b is not None
        return self._b

    def close(self) -> None:
        """Close both services."""
        self.alone.close()
        self.beside.close()

    def both(self, action: Callable[[Service], Made]) -> dict[Service, Made]:
        """Something that B does, in both worlds."""
        self._steps += 1
        made = {}
        for service in (self.alone, self.beside):
            with _ids(self._steps):
                made[service] = action(service)
        return made

    def track(self, kind: str, address: str, block: int) -> None:
        """B tracks a token or wallet since a block."""
        at = instant(self.node, block)
        self.subjects[address] = self.both(lambda service: getattr(service, kind)(self.b, address, tracked_from=at))

    def ask_history(self, address: str, start: str, end: str = "now") -> None:
        """B asks for a past range."""
        rows = self.subjects[address]
        self.both(lambda service: service.ask_history(self.b, rows[service], start, end))

    def traffic(self, count: int) -> int:
        """Some blocks of transfers among the wallets; the newest one."""
        self.chain.transfer_many(count, self.tokens, per_block=3)
        self.chain.submit(*self.chain.wallets[:2], value=10**15)
        return self.chain.mine()

    def mint_silently(self, holder: str) -> int:
        """Give somebody some of a token without an event; the block."""
        self.chain.submit(
            self.chain.deployer, self.hush.address, call_data("TestToken", "mint_silently", holder, 7, False)
        )
        return self.chain.mine()

    def cycle(self) -> None:
        """A cycle of both worlds, at the same head."""
        for service in (self.beside, self.alone):
            service.good_cycle()

    def history(self) -> None:
        """A slice of history in both worlds, to its end."""
        for service in (self.beside, self.alone):
            service.history()

    def publish(self) -> None:
        """Build and publish the marts of both worlds."""
        for service in (self.beside, self.alone):
            settings = service.settings
            stores = Stores(settings.data_dir)
            run_dbt(stores, "run")
            shutil.copyfile(stores.marts, settings.marts_path)
            with open_warehouse(settings.warehouse_path) as connection:
                (batch,) = connection.execute("select max(batch_id) from raw.batches").fetchone() or (0,)
                record_transform(connection, batch, "test")
                version = publish(settings.marts_path, settings.serving_dir, batch).version
                record_publication(connection, version, batch)
                report_requests(connection, service.store)

    def assert_same(self) -> None:
        """B is told the same in both worlds, by every operation that reads."""
        blocks = range(self.node.head() - 30, self.node.head() + 1, 3)
        moments = {number: f"{instant(self.node, number):%Y-%m-%dT%H:%M:%SZ}" for number in blocks}
        expected = told(self.alone, self.b, moments)
        found = told(self.beside, self.b, moments)
        assert len([path for path in expected if "asOf" in path]) > 20
        assert found.keys() == expected.keys()
        for path, answer in expected.items():
            assert (path, found[path]) == (path, answer)


@contextmanager
def _ids(step: int) -> Iterator[None]:
    """Make ids of the step's number, instead of the clock and chance."""
    with (
        mock.patch("control.ids._last", 0),
        mock.patch("control.ids.time", SimpleNamespace(time_ns=lambda: step * 10**9)),
        mock.patch("control.ids.secrets", SimpleNamespace(randbits=lambda _: 0)),
    ):
        yield


def told(service: Service, tenant: Principal, moments: Mapping[int, str]) -> dict[str, Any]:
    """What the API answers a tenant, by path and query; at moments where an operation takes one."""
    with TestClient(create_app(service.settings)) as client:
        client.headers["Authorization"] = f"Bearer {service.bearer(tenant)}"

        def get(path: str) -> tuple[int, Any]:
            answer = client.get(path)
            return answer.status_code, _facts(answer.json())

        return {path: get(path) for template in _templates() for path in _asked(get, *template, moments)}


def _templates() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for path, methods in DOCUMENT["paths"].items():
        if "get" in methods and not path.startswith(_NOT_ASKED):
            yield path, methods["get"]["parameters"]


def _asked(
    get: Callable[[str], Any], template: str, parameters: list[dict[str, Any]], moments: Mapping[int, str]
) -> Iterator[str]:
    """The addresses of an operation: of each of the tenant's objects, and at each moment."""
    names = [parameter["name"] for parameter in parameters if parameter["in"] == "path"]
    if not set(names) <= _LISTED.keys() | {"operationId"}:
        return
    for path in _filled(get, template, names):
        queries = {parameter["name"]: parameter.get("required", False) for parameter in parameters}
        if not queries.get("from", False):
            yield path
        for block, time in moments.items():
            if "asOf" in queries:
                yield from (f"{path}?asOf={moment.format(block=block, time=time)}" for moment in _MOMENTS)
            elif queries.get("from", False):
                yield f"{path}?from=block:{min(moments)}&to=block:{block}"


def _filled(get: Callable[[str], Any], template: str, names: list[str]) -> Iterator[str]:
    paths = [template]
    for name in names:
        filled = []
        for path in paths:
            # What belongs to an object is listed below it.
            where, field = _LISTED.get(name, (path.split("/{")[0], "id"))
            filled += [path.replace(f"{{{name}}}", str(row[field]), 1) for row in get(where)[1]["data"]]
        paths = filled
    yield from paths


def _facts(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {name: _facts(value) for name, value in answer.items() if name not in _LEFT_OUT}
    return [_facts(value) for value in answer] if isinstance(answer, list) else answer


@pytest.fixture
def worlds(node: AnvilNode, tmp_path: Path) -> Iterator[Worlds]:
    made = Worlds(node, tmp_path)
    yield made
    made.close()


def test_what_is_read_for_one_tenant_is_not_shown_to_another(worlds: Worlds) -> None:
    """Checks, behaviour and as-of of B, whatever A's readings at the same blocks say."""
    start = worlds.traffic(6)
    worlds.traffic(9)
    for token in (worlds.gold, worlds.hush):
        worlds.track("token", token.address, start)
    worlds.track("wallet", worlds.chain.wallets[0], start)
    worlds.cycle()
    worlds.publish()
    # A has its own view of the same and of another token, at other times: each of its ranges begins with readings.
    a, beside = worlds.a, worlds.beside
    worlds.mint_silently(worlds.chain.wallets[3])
    for token in worlds.tokens:
        opened = instant(worlds.node, start + 2)
        beside.token(a, token.address, tracked_from=opened)
    worlds.cycle()
    held = worlds.chain.mine()
    for wallet in worlds.chain.wallets[:5]:
        beside.wallet(a, wallet, tracked_from=instant(worlds.node, held))
    worlds.cycle()
    # Only A's token moves.
    worlds.chain.transfer(worlds.coin, worlds.chain.wallets[1], worlds.chain.wallets[2], 5)
    worlds.chain.mine()
    worlds.cycle()
    worlds.publish()
    worlds.assert_same()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=_LONG) for seed in range(1, 8))])
def test_a_tenant_beside_an_active_one_is_told_what_it_is_told_alone(worlds: Worlds, seed: int) -> None:
    draw = random.Random(seed)
    chain, a, beside = worlds.chain, worlds.a, worlds.beside
    subjects: list[SubjectRow] = []
    places = [("token", token.address) for token in worlds.tokens] + [("wallet", w) for w in chain.wallets]
    own = draw.sample(places[:3], 2) + draw.sample(places[3:], 2)

    def act() -> None:
        choice = draw.random()
        if choice < 0.5 or not subjects:
            kind, address = draw.choice([place for place in places if place not in taken])
            taken.append((kind, address))
            opened = instant(worlds.node, draw.randrange(12, worlds.node.head() + 1))
            subjects.append(getattr(beside, kind)(a, address, tracked_from=opened))
        elif choice < 0.7:
            now = datetime.fromtimestamp(worlds.node.block_time(worlds.node.head()), UTC)
            beside.track(a, subjects.pop(), False, now)
        else:
            beside.ask_history(a, draw.choice(subjects), f"block:{draw.randrange(10, 80)}")

    taken: list[tuple[str, str]] = []
    for turn in range(6):
        worlds.traffic(draw.randrange(1, 6))
        if draw.random() < 0.4:
            worlds.mint_silently(draw.choice(chain.wallets))
        for _ in range(draw.randrange(3)):
            if len(taken) < len(places):
                act()
        if turn < len(own):
            worlds.track(*own[turn], worlds.node.head() - draw.choice([0, 3, 75]))
        elif turn == len(own):
            worlds.ask_history(own[0][1], "block:12")
        worlds.cycle()
        worlds.history()
        if turn == 2:
            worlds.publish()
    worlds.cycle()
    worlds.publish()
    worlds.assert_same()
