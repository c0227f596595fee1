"""Rate limits of several API nodes: leases of requests in PostgreSQL, with fake clocks of nodes and database."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from anyio import CapacityLimiter
from litestar.testing import TestClient

from api.app import create_app
from api.errors import ApiError
from api.http.rate_limits import SharedRateLimiter
from control import access, request_windows, tenants
from control.errors import StoreUnavailable
from control.request_windows import Lease, batch_size
from control.settings import Settings, load_settings
from control.store import ControlStore, open_store
from tests.unit.control.postgres import new_database
from tests.waiting import Naps

MINUTE = 28_000_000
"""Number of the first window of the tests."""


class Cluster:
    """A control store in PostgreSQL; the test sets the clock of the database."""

    def __init__(self, settings: Settings, clock: psycopg.Connection[Any]) -> None:
        self.settings = settings
        self._clock = clock

    def set_clock(self, minute: int, second: float = 0.0) -> None:
        self._clock.execute("update test_clock set at = to_timestamp(%s)", [minute * 60 + second])

    def windows(self) -> dict[str, int]:
        """Return the window number of each key."""
        return dict(self._clock.execute("select key, window_number from request_windows").fetchall())


@pytest.fixture(scope="module")
def database(postgres_server: str) -> Iterator[str]:
    with new_database(postgres_server, f"t{uuid4().hex}") as url:
        with closing(open_store(load_settings({"LEDGERMART_CONTROL_URL": url}))) as store:
            store.migrate()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("create table test_clock (at timestamptz)")
            connection.execute("insert into test_clock values (now())")
            connection.execute(
                "create function public.clock_timestamp() returns timestamptz language sql volatile "
                "as 'select at from public.test_clock'"
            )
            # The test's function has precedence over that of the system.
            connection.execute(f'alter database "{connection.info.dbname}" set search_path = public, pg_catalog')
        yield url


@pytest.fixture
def cluster(database: str) -> Iterator[Cluster]:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("truncate request_windows")
        cluster = Cluster(load_settings({"LEDGERMART_CONTROL_URL": database}), connection)
        cluster.set_clock(MINUTE)
        yield cluster


class Node:
    """The limiter of one API node."""

    def __init__(self, store: ControlStore, per_minute: int, clock: Callable[[], float]) -> None:
        self._store = store
        self._per_minute = per_minute
        self.statements = 0
        self._limiter = SharedRateLimiter(per_minute, self._lease, CapacityLimiter(4), clock)

    def _lease(self, key: str, is_sweeping: bool) -> Lease:
        self.statements += 1
        with self._store.write() as session:
            if is_sweeping:
                request_windows.sweep(session)
            return request_windows.lease(session, key, self._per_minute)

    async def admits(self, key: str = "key") -> bool:
        try:
            await self._limiter.admit(key)
        except ApiError as error:
            if error.status != 429:
                raise
            return False
        return True


@pytest.fixture
def store(cluster: Cluster) -> Iterator[ControlStore]:
    with closing(open_store(cluster.settings)) as store:
        yield store


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_two_nodes_in_turns_admit_the_limit_in_each_window(cluster: Cluster, store: ControlStore, limit: int) -> None:
    time = Naps()
    first, second = Node(store, limit, time.clock), Node(store, limit, time.clock)

    async def case() -> None:
        admitted = [await node.admits() for _ in range(limit) for node in (first, second)]
        assert sum(admitted) == limit
        assert first.statements + second.statements <= 2 * (limit // batch_size(limit) + 2)
        # A used-up window needs no statement.
        before = first.statements
        assert not await first.admits()
        assert first.statements == before
        # Another key has a window of its own.
        assert await first.admits("another")
        cluster.set_clock(MINUTE + 1)
        time.sleep(60)
        assert sum([await node.admits() for _ in range(limit) for node in (second, first)]) == limit

    asyncio.run(case())


def test_one_node_alone_admits_the_whole_limit(cluster: Cluster, store: ControlStore) -> None:
    node = Node(store, 110, Naps().clock)

    async def case() -> None:
        assert sum([await node.admits() for _ in range(120)]) == 110
        assert node.statements == 110 // batch_size(110)

    asyncio.run(case())


def test_two_nodes_in_threads_admit_the_limit(cluster: Cluster, store: ControlStore) -> None:
    limit, tasks = 300, 40
    begin = Barrier(2)

    def serve() -> int:
        async def case() -> int:
            node = Node(store, limit, Naps().clock)

            async def client() -> int:
                return sum([await node.admits() for _ in range(10)])

            begin.wait()
            return sum(await asyncio.gather(*(client() for _ in range(tasks))))

        return asyncio.run(case())

    with ThreadPoolExecutor(2) as threads:
        admitted = [found.result() for found in [threads.submit(serve) for _ in range(2)]]
    assert sum(admitted) == limit


def test_lease_does_not_outlive_the_window_of_the_database(cluster: Cluster, store: ControlStore) -> None:
    time = Naps()
    node = Node(store, 100, time.clock)
    cluster.set_clock(MINUTE, 57)

    async def case() -> None:
        assert await node.admits()
        time.sleep(3)
        cluster.set_clock(MINUTE + 1)
        assert await node.admits()
        assert cluster.windows() == {"key": MINUTE + 1}
        assert node.statements == 2

    asyncio.run(case())


def test_window_in_the_row_wins_against_a_slightly_older_one(cluster: Cluster, store: ControlStore) -> None:
    """A statement may read the clock before it waits for a row that another node moves to the next window."""

    def lease() -> Lease:
        with store.write() as session:
            return request_windows.lease(session, "key", 40)

    cluster.set_clock(MINUTE + 1)
    assert lease() == Lease(granted=2, unleased=38, seconds_left=60)
    cluster.set_clock(MINUTE, 59)
    assert lease() == Lease(granted=2, unleased=36, seconds_left=61)
    assert cluster.windows() == {"key": MINUTE + 1}
    # The database's clock was set back: keys must not be refused until it reaches the old time.
    cluster.set_clock(MINUTE - 30)
    assert lease() == Lease(granted=2, unleased=38, seconds_left=60)


def test_ended_windows_are_deleted(cluster: Cluster, store: ControlStore) -> None:
    time = Naps()
    node = Node(store, 100, time.clock)

    async def case() -> None:
        for number in range(3):
            await node.admits(f"old {number}")
        cluster.set_clock(MINUTE + 1)
        time.sleep(60)
        await node.admits("recent")
        cluster.set_clock(MINUTE + 2)
        await node.admits("not yet")
        assert len(cluster.windows()) == 5
        time.sleep(60)
        await node.admits("new")
        assert cluster.windows().keys() == {"recent", "not yet", "new"}

    asyncio.run(case())


def test_waiting_requests_share_a_lease_and_the_answer_counts_down() -> None:
    leased: list[bool] = []

    def lease(_key: str, is_sweeping: bool) -> Lease:
        leased.append(is_sweeping)
        return Lease(granted=50, unleased=1_000 - 50 * len(leased), seconds_left=42.4)

    async def case() -> None:
        limiter = SharedRateLimiter(1_000, lease, CapacityLimiter(4), Naps().clock)
        answers = await asyncio.gather(*(limiter.admit("key") for _ in range(60)))
        assert leased == [False, False]
        assert {answer["ratelimit-policy"] for answer in answers} == {'"default";q=1000;w=60'}
        # Leases of other nodes since then are not known.
        assert [answer["ratelimit"] for answer in answers] == [f'"default";r={999 - n};t=42' for n in range(60)]

    asyncio.run(case())


def test_failed_lease_admits_no_request() -> None:
    def fail(_key: str, _is_sweeping: bool) -> Lease:
        raise StoreUnavailable("the control store cannot be used")

    async def case() -> None:
        limiter = SharedRateLimiter(10, fail, CapacityLimiter(4), Naps().clock)
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                await limiter.admit("key")

    asyncio.run(case())


def test_two_processes_share_the_limit_of_a_key_and_count_addresses_alone(
    cluster: Cluster, store: ControlStore, tmp_path: Any
) -> None:
    with store.write() as session:
        tenant = tenants.create(session, f"acme {uuid4()}")
        _, secret = access.create_key(session, tenant.id, access.Role.VIEWER)
    variables = {
        "LEDGERMART_CONTROL_URL": cluster.settings.control_url,
        "LEDGERMART_DATA_DIR": str(tmp_path),
        "LEDGERMART_RATE_LIMIT_PER_MINUTE": "30",
    }
    apps = [create_app(load_settings(variables)) for _ in range(2)]
    with TestClient(apps[0]) as first, TestClient(apps[1]) as second:
        answers = [
            client.get("/v1/quotas", headers={"Authorization": f"Bearer {secret}"})
            for _ in range(20)
            for client in (first, second)
        ]
        assert [answer.status_code for answer in answers].count(200) == 30
        refused = [answer for answer in answers if answer.status_code != 200]
        assert {answer.json()["code"] for answer in refused} == {"rate-limited"}
        assert {(answer.headers["ratelimit"], answer.headers["retry-after"]) for answer in refused} == {
            ('"default";r=0;t=60', "60")
        }
        before = cluster.windows()
        answers = [
            client.post("/embed/data/cap-table/csv", data={"token": "x"})
            for client in (first, second)
            for _ in range(30)
        ]
        assert {answer.json()["code"] for answer in answers} == {"token-invalid"}
        assert cluster.windows() == before
