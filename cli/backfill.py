"""Progress bars of history requests and attestations, and running cycles until all of them are finished."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from cli.cycle import CycleResult, run_cycle
from cli.exit_codes import EXIT_NETWORK_FAILED
from control import moves, operations
from control.instants import write_instant
from control.operations import OperationKind, OperationRow, Status
from control.settings import Settings
from control.store import ControlStore, open_store

_POLL_SECONDS = 0.5
# Give up after this many cycles in a row without progress, and report it.
_CYCLES_WITHOUT_PROGRESS = 3


@contextmanager
def progress_bars(settings: Settings, console: Console) -> Iterator[None]:
    """Show a bar for each unfinished operation while the block runs; show nothing without a terminal."""
    if not console.is_terminal:
        yield
        return
    store = open_store(settings)
    # Bound to the terminal: a cycle's own standard error goes to its log.
    console = Console(file=console.file, highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=16), MofNCompleteColumn())
    ended = threading.Event()
    with Progress(*columns, TextColumn("{task.fields[rate]}"), console=console) as bars:
        thread = threading.Thread(target=_follow, args=(store, settings.shard, bars, ended), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            store.close()


def _follow(store: ControlStore, shard: int, bars: Progress, ended: threading.Event) -> None:
    tasks: dict[str, TaskID] = {}
    while True:
        is_last = ended.wait(_POLL_SECONDS)
        with store.read() as session:
            found = {operation.id: operation for operation in operations.unfinished(session, shard)}
        for name, operation in found.items():
            if name not in tasks:
                tasks[name] = bars.add_task(name, rate="")
            bars.update(
                tasks[name],
                completed=operation.progress_done,
                total=operation.progress_total,
                rate=f"{_unit(operation)}, {operation.rate}/s" if operation.rate else _unit(operation),
            )
        for name in set(tasks) - set(found):
            task = bars.tasks[bars.task_ids.index(tasks[name])]
            bars.update(tasks[name], completed=task.total)
        if is_last:
            return


def _unit(operation: OperationRow) -> str:
    return "balances" if operation.kind is OperationKind.ATTESTATION else "blocks"


def run_backfill(settings: Settings, networks: list[str] | None, console: Console) -> CycleResult:
    """Run cycles until the shard's history requests and attestations are finished; return the last cycle's result.

    It does not wait for attestations of blocks that are not final yet, nor for requests of tenants that are moving to
    another shard. It ends early in these cases:

    - a step of a cycle fails;
    - another process is writing;
    - every request waits for the budget of its network;
    - no request made progress for a few cycles, which counts as failed.

    Raises:
        UnknownNetwork: a network is not defined or is disabled.
    """
    store = open_store(settings)
    still, before = 0, _standing(store, settings.shard)
    with store.read() as session:
        leaving = moves.find_leaving(session, settings.shard)
    for name in leaving.values():
        console.print(f"{name} is moving to another shard; its requests wait until then", markup=False)
    try:
        with progress_bars(settings, console):
            while True:
                result = run_cycle(settings, networks)
                now = _standing(store, settings.shard)
                still, before = (still + 1 if now == before else 0), now
                if not now or result.exit_code not in (0, EXIT_NETWORK_FAILED):
                    return result
                if waiting := _all_waiting(store, settings.shard):
                    words = "; ".join(part for part in (waiting, result.error) if part)
                    return replace(result, exit_code=EXIT_NETWORK_FAILED, error=words)
                if still >= _CYCLES_WITHOUT_PROGRESS:
                    error = f"no progress in {still} cycles: {', '.join(now)}"
                    words = "; ".join(part for part in (error, result.error) if part)
                    return replace(result, exit_code=EXIT_NETWORK_FAILED, error=words)
    finally:
        store.close()


def _all_waiting(store: ControlStore, shard: int) -> str | None:
    """Return a message if every unfinished request waits for its network's budget; else None."""
    unfinished = _unfinished(store, shard)
    waiting = [(operation.id, operation.waits_until) for operation in unfinished if operation.waits_until is not None]
    if len(waiting) < len(unfinished):
        return None
    told = ", ".join(f"{name} resumes at {write_instant(until)}" for name, until in waiting)
    return f"{operations.WAITING_FOR_BUDGET}: {told}"


def _standing(store: ControlStore, shard: int) -> dict[str, int]:
    """Return the progress of every unfinished request."""
    return {operation.id: operation.progress_done for operation in _unfinished(store, shard)}


def _unfinished(store: ControlStore, shard: int) -> list[OperationRow]:
    with store.read() as session:
        found, leaving = operations.unfinished(session, shard), moves.find_leaving(session, shard)
    # A cycle resolves an attestation as soon as its block is final.
    return [
        one
        for one in found
        if one.tenant_id not in leaving and not (one.kind is OperationKind.ATTESTATION and one.status is Status.PENDING)
    ]
