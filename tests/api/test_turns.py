"""Requests over sockets while other requests wait: reads and requests of other tenants continue."""

import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
from sqlalchemy import text

from tests.api.world import World
from tests.e2e.serving import serving
from tests.waiting import eventually

_WRITERS = 80


def test_reads_continue_while_writers_wait_for_a_lock(world: World) -> None:
    begun, ended = threading.Semaphore(0), list[int]()

    def write(client: httpx.Client, number: int) -> None:
        begun.release()
        answer = client.put(
            "/v1/networks/ethereum/ledgers", json={"name": f"book-{number}"}, headers=world.headers("admin")
        )
        ended.append(answer.status_code)

    limits = httpx.Limits(max_connections=_WRITERS + 4)
    with (
        serving(world.settings) as url,
        httpx.Client(base_url=url, timeout=None, limits=limits) as client,
        ThreadPoolExecutor(_WRITERS) as threads,
    ):
        with world.store.write() as session:
            session.execute(text("select 1"))  # from here on the lock is held
            for number in range(_WRITERS):
                threads.submit(write, client, number)
            for _ in range(_WRITERS):
                begun.acquire()
            eventually(lambda: len(ended) > 0, "the requests beyond those that may wait are refused")
            for who in ("foreign", "viewer", "foreign"):
                assert client.get("/v1/tokens", headers=world.headers(who)).status_code == 200
            assert client.get("/health/ready").status_code == 200
            # Most writers are still waiting.
            assert sum(status != 429 for status in ended) < _WRITERS // 2
    assert len(ended) == _WRITERS
    assert set(ended) <= {200, 201, 429, 503}
    assert ended.count(201) + ended.count(200) > 0
