"""`ledgermart up` as clients wait for it: from a block to the API's answer, and from a history request to `Succeeded`.

The token that is watched has a million transfers. While blocks are timed, another history request is always at work.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import polars as pl

from tests.bench.measurement import Measurement
from tests.bench.workload import instant_of, new_service, running_world, track
from tests.chain.world import World, holder_at
from tests.e2e.client import ApiClient

# Events in a transaction, blocks.
_OLD = (1000, 1000)
_HOLDERS = 10_000
_PAST_BLOCKS = 2345
_CYCLE_SECONDS = 5
_BLOCKS_TIMED = 40
_REPEAT = 5
_LOOK_SECONDS = 0.05
_PATIENCE_SECONDS = 300.0


def run(folder: Path, repeat: int | None, note: Callable[[str], None]) -> list[Measurement]:
    """Fill a chain, start everything, ask for `repeat` pasts one after the other, and time 40 blocks."""
    measured: list[Measurement] = []

    def add(quantity: str, value: float, goal: str) -> None:
        measured.append(Measurement("latency", quantity, "s", value, goal))

    repeat = repeat or _REPEAT
    events, blocks = _OLD
    with ExitStack() as started:
        world = started.enter_context(running_world(blocks + _PAST_BLOCKS + _BLOCKS_TIMED))
        token = world.deploy_token("BENCH", 18)
        others = [world.deploy_token(f"PAST{number}", 18) for number in range(1 + repeat)]
        note(f"latency: filling a chain with {events * blocks:,} transfers, and {_PAST_BLOCKS:,} blocks")
        first = world.emit_blocks(token, blocks=blocks, transactions=1, events=events, holders=_HOLDERS).first
        past = world.node.head() + 1
        for other in others:
            world.emit_blocks(other, blocks=10, transactions=10, events=5, holders=_HOLDERS)
        while world.node.head() < past + _PAST_BLOCKS:
            world.mine()
        service, key = new_service(
            folder / "latency", world.node.url, {"LEDGERMART_CYCLE_SECONDS": str(_CYCLE_SECONDS)}
        )
        ids = track(service, key, "local", {token: instant_of(world.node, first)})
        service.run("cycle")
        started.enter_context(service)
        service.start()
        client = started.enter_context(ApiClient(service.api_url, key))
        between = {"from": _text(world, past), "to": _text(world, past + _PAST_BLOCKS)}
        for number, other in enumerate(others):
            note(f"latency: past {number + 1}")
            body = {"ledger": "local", "symbol": str(other.symbol), "ledgerId": other.address}
            path = f"/v1/tokens/{client.post('/v1/tokens', body)['id']}"
            taken = _history(client, path, between)
            # The first one waits for the worker, which is only starting.
            if number:
                add("history request of 2,345 blocks, to `Succeeded`", taken, "below 10")
        note(f"latency: {_BLOCKS_TIMED} blocks, beside a history request")
        page = f"/v1/tokens/{ids[token.address]}/cap-table"
        waits = []
        with _asking(service.api_url, key, between):
            chance = random.Random(1)
            for _ in range(_BLOCKS_TIMED):
                time.sleep(chance.uniform(0, _CYCLE_SECONDS))
                block = world.emit_blocks(token, blocks=1, transactions=1, events=1, holders=_HOLDERS).last
                begun = time.perf_counter()
                _wait(lambda: client.get(page, limit=1)["asOf"]["blockNumber"] >= block, "the block is in the answer")  # noqa: B023
                waits.append(time.perf_counter() - begun)
        found = pl.Series(waits)
        for name, share in (("p50", 0.5), ("p95", 0.95)):
            value = found.quantile(share, "higher")
            assert value is not None
            add(f"block to answer, beside a history request, {name}", value, "below 10" if name == "p95" else "")
    return measured


def _text(world: World, block: int) -> str:
    return instant_of(world.node, block).strftime("%Y-%m-%dT%H:%M:%SZ")


def _history(client: ApiClient, path: str, between: dict[str, str]) -> float:
    """Ask for a past; the seconds until it has succeeded."""
    begun = time.perf_counter()
    operation = f"{path}/history-requests/{client.post(f'{path}/history-requests', between)['id']}"
    _wait(lambda: client.get(operation)["status"] == "Succeeded", operation)
    return time.perf_counter() - begun


@contextmanager
def _asking(url: str, key: str, between: dict[str, str]) -> Iterator[None]:
    """One client that asks for a wallet's past, and when that has succeeded for another's."""
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
