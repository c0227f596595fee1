"""Waiting times of clients of `ledgermart up`: from block to API answer, and from history request to `Succeeded`.

The observed token has a million transfers. While blocks are timed, another history request is always running. Blocks
come at a chain's pace, even if the last one is not in an answer yet.

`run_shards` times one service, then two that share nothing, then two shards, over the same chain. The second case shows
the cost of using the same two cores, the third the cost of sharing. Shards share PostgreSQL, a store of versions and a
lake.
"""

import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple
from unittest import mock

import polars as pl

from control.ranges import BlockRange
from tests.bench.measurement import Measurement
from tests.bench.workload import BLOCK_SECONDS, instant_of, new_service, running_world, track
from tests.chain.process import free_port
from tests.chain.world import Token, World, holder_at
from tests.datasets.object_store import ObjectStore
from tests.e2e.client import ApiClient
from tests.unit.control.postgres import new_database, start_postgres, stop_postgres, unique_name

# Events in a transaction, blocks: few, since the node keeps the state of each.
_OLD = (10_000, 100)
_HOLDERS = 10_000
_PAST_BLOCKS = 2345
_CYCLE_SECONDS = 5
_BLOCKS_TIMED = 40
_REPEAT = 3
_LOOK_SECONDS = 0.05
_PATIENCE_SECONDS = 300.0


def run(folder: Path, repeat: int | None, note: Callable[[str], None], measured: list[Measurement]) -> None:
    """Request `repeat` histories of one service one after the other, and time 40 blocks."""
    with _filled(repeat or _REPEAT, note) as chain:
        _measure(chain, "latency", folder, note, measured)


def run_shards(folder: Path, repeat: int | None, note: Callable[[str], None], measured: list[Measurement]) -> None:
    """Do what `run` does with one service, with two that share nothing, and with two shards."""
    with _filled(repeat or _REPEAT, note) as chain:
        alone = _measure(chain, "one service", folder, note, measured)
        for name, sharing in (("two services", nullcontext({})), ("two shards", _shared())):
            with sharing as variables:
                p95 = _measure(chain, name, folder, note, measured, variables, services=2)
            goal = "at most 1.5" if variables else ""
            measured.append(Measurement(name, "p95, times that of one service", "x", p95 / alone, goal))


class _Chain(NamedTuple):
    """A chain. A token has a million transfers, from block `first` on; each of the others has 500 in the `past`."""

    world: World
    token: Token
    first: int
    others: list[Token]
    past: BlockRange


@contextmanager
def _filled(repeat: int, note: Callable[[str], None]) -> Iterator[_Chain]:
    """Run a chain with as many other tokens as histories are requested."""
    events, blocks = _OLD
    with running_world(blocks + _PAST_BLOCKS + 3 * _BLOCKS_TIMED) as world:
        token = world.deploy_token("BENCH", 18)
        others = [world.deploy_token(f"PAST{number}", 18) for number in range(1 + repeat)]
        note(f"filling a chain with {events * blocks:,} transfers, and {_PAST_BLOCKS:,} blocks")
        first = world.emit_blocks(token, blocks=blocks, transactions=1, events=events, holders=_HOLDERS).first
        # Blocks after the transfers make them final.
        past = world.node.head() + 1
        for other in others:
            world.emit_blocks(other, blocks=10, transactions=10, events=5, holders=_HOLDERS)
        world.node.mine_empty(past + _PAST_BLOCKS - world.node.head() - 1, BLOCK_SECONDS)
        world.mine(world.node.block_time(world.node.head()) + BLOCK_SECONDS)
        yield _Chain(world, token, first, others, BlockRange(past, past + _PAST_BLOCKS))


def _measure(
    chain: _Chain,
    name: str,
    folder: Path,
    note: Callable[[str], None],
    measured: list[Measurement],
    variables: Mapping[str, str] = MappingProxyType({}),
    *,
    services: int = 1,
) -> float:
    """Start the services, which all track the token, and measure the first one; return the p95 of its blocks.

    Args:
        chain: the chain.
        name: names the measurements, and the folder of the services.
        folder: of the benchmark.
        note: called with a message before each step.
        measured: gets the measurements.
        variables: settings that the services share; without any, they share nothing.
        services: how many there are.
    """
    world, token = chain.world, chain.token

    def add(quantity: str, value: float, goal: str) -> None:
        measured.append(Measurement(name, quantity, "s", value, goal))

    with ExitStack() as started:
        # The first service is the last to start, so it is measured beside the others.
        for number in reversed(range(services)):
            service, key = new_service(
                folder / name / str(number),
                world.node.url,
                {
                    **variables,
                    "LEDGERMART_CYCLE_SECONDS": str(_CYCLE_SECONDS),
                    # Dagster's pages listen last, so another service would find their usual port free.
                    "LEDGERMART_DAGSTER_PORT": str(free_port()),
                    **({"LEDGERMART_SHARD": str(number)} if variables else {}),
                },
                tenant=f"bench {number}",
            )
            ids = track(service, key, "local", {token: instant_of(world.node, chain.first)})
            service.run("cycle")
            started.enter_context(service)
            service.start()
        client = started.enter_context(ApiClient(service.api_url, key))
        between = {"from": _text(world, chain.past.first), "to": _text(world, chain.past.last)}
        for number, other in enumerate(chain.others):
            note(f"{name}: past {number + 1}")
            body = {"ledger": "local", "symbol": str(other.symbol), "ledgerId": other.address}
            path = f"/v1/tokens/{client.post('/v1/tokens', body)['id']}"
            taken = _history(client, path, between)
            # The first one waits for the worker, which is only starting.
            if number:
                add("history request of 2,345 blocks, to `Succeeded`", taken, "below 10")
        note(f"{name}: {_BLOCKS_TIMED} blocks, beside a history request")
        page = f"/v1/tokens/{ids[token.address]}/cap-table"
        with _asking(service.api_url, key, between):
            waits = _time_blocks(
                lambda: world.emit_blocks(token, blocks=1, transactions=1, events=1, holders=_HOLDERS).last,
                lambda: int(client.get(page, limit=1)["asOf"]["blockNumber"]),
            )
    quantiles: dict[str, float] = {}
    for part, share in (("p50", 0.5), ("p95", 0.95), ("slowest", 1.0)):
        value = pl.Series(waits).quantile(share, "higher")
        assert value is not None
        quantiles[part] = value
        quantity = f"block to answer, beside a history request, {part} of {len(waits)}"
        add(quantity, value, "below 10" if part == "p95" else "")
    return quantiles["p95"]


@contextmanager
def _shared() -> Iterator[dict[str, str]]:
    """Settings of PostgreSQL, a store of versions and a lake that all shards have."""
    with ExitStack() as started:
        server = start_postgres()
        started.callback(stop_postgres, server)
        objects = started.enter_context(ObjectStore())
        objects.make_bucket("ledgermart")
        started.enter_context(mock.patch.dict(os.environ, objects.variables))
        control, catalogue = (started.enter_context(new_database(server["url"], unique_name())) for _ in range(2))
        yield {
            "LEDGERMART_CONTROL_URL": control,
            "LEDGERMART_VERSIONS": "s3://ledgermart/versions",
            "LEDGERMART_LAKE": f"ducklake:postgres:{catalogue}",
            "LEDGERMART_LAKE_DATA": "s3://ledgermart/lake",
        }


def _time_blocks(make: Callable[[], int], newest_in_answer: Callable[[], int]) -> list[float]:
    """Mine blocks at random moments; return for each the seconds until the API's answer has it."""
    chance = random.Random(1)
    waits: list[float] = []
    waiting: dict[int, float] = {}
    next_at = time.perf_counter()
    while len(waits) < _BLOCKS_TIMED:
        now = time.perf_counter()
        if len(waits) + len(waiting) < _BLOCKS_TIMED and now >= next_at:
            waiting[make()] = time.perf_counter()
            next_at = now + chance.uniform(0, _CYCLE_SECONDS)
        newest = newest_in_answer()
        now = time.perf_counter()
        for block in [block for block in waiting if block <= newest]:
            waits.append(now - waiting.pop(block))
        if any(now - begun > _PATIENCE_SECONDS for begun in waiting.values()):
            raise RuntimeError(f"not in an answer within {_PATIENCE_SECONDS:.0f} s: blocks {list(waiting)}")
        time.sleep(_LOOK_SECONDS)
    return waits


def _text(world: World, block: int) -> str:
    return instant_of(world.node, block).strftime("%Y-%m-%dT%H:%M:%SZ")


def _history(client: ApiClient, path: str, between: dict[str, str]) -> float:
    """Request a history; return the seconds until it has succeeded."""
    begun = time.perf_counter()
    operation = f"{path}/history-requests/{client.post(f'{path}/history-requests', between)['id']}"
    _wait(lambda: client.get(operation)["status"] == "Succeeded", operation)
    return time.perf_counter() - begun


@contextmanager
def _asking(url: str, key: str, between: dict[str, str]) -> Iterator[None]:
    """A client that requests the histories of wallets one after the other."""
    has_ended = threading.Event()

    def ask() -> None:
        with ApiClient(url, key) as client:
            for number in range(_HOLDERS):
                if has_ended.is_set():
                    return
                body = {"ledger": "local", "ledgerId": holder_at(_HOLDERS + number)}
                _history(client, f"/v1/wallets/{client.post('/v1/wallets', body)['id']}", between)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        has_ended.set()
        thread.join()


def _wait(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {_PATIENCE_SECONDS:.0f} s: {what}")
        time.sleep(_LOOK_SECONDS)
