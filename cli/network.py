"""`ledgermart network`: an operator's actions on one network."""

from dataclasses import dataclass
from typing import Any

from rich.console import Console

from control.networks.in_force import networks_in_force
from control.settings import Settings
from pipelines.balances.readings import request_native_balances
from pipelines.chain.reset import Reset, is_known, reset_network
from pipelines.deliver.progress import write_progress
from pipelines.lake.moving import is_same_chain
from pipelines.lake.tables import open_lake
from pipelines.raw.database import create_tables
from warehouse.port import Warehouse


class NothingCollectedError(Exception):
    """The warehouse holds nothing of the network; the message says what to check."""


@dataclass(frozen=True)
class ResetResult:
    """Result of a reset: the moved rows, their archive, and whether the facts of the network's lake were deleted."""

    network: str
    reset: Reset
    is_lake_cleared: bool

    def as_json(self) -> dict[str, Any]:
        """The object that `ledgermart network reset --json` prints."""
        return {
            "network": self.network,
            "archive": str(self.reset.archive),
            "rows": self.reset.rows,
            "isLakeCleared": self.is_lake_cleared,
        }


def run_reset(settings: Settings, network: str, *, keeps_lake: bool = False) -> ResetResult:
    """Move all facts of a network into an archive, under the lock of the warehouse's writer.

    If the network's lake has facts of the same chain, they are deleted after the archive is complete.

    Args:
        settings: of the shard.
        network: name of the network.
        keeps_lake: leave the lake as it is; the next cycles take its facts.

    Raises:
        NothingCollectedError: nothing was collected of the network.
        LakeError: the lake does not answer, another shard writes it, or a bulk run collects the network; nothing is
            changed in the warehouse.
        WriterBusyError: another process wrote the warehouse for longer than LEDGERMART_LOCK_WAIT_SECONDS.
    """
    nothing = NothingCollectedError(f"nothing was collected of network {network!r}; `ledgermart status` lists networks")
    warehouse = Warehouse(settings)
    if not warehouse.exists():
        raise nothing
    with warehouse.exclusive(f"reset of network {network}"), warehouse.open() as connection:
        create_tables(connection)
        if not is_known(connection, network):
            raise nothing
        cleared = False

        def clear_lake() -> None:
            # First the lake: a command that is killed afterwards can be repeated, since the warehouse still has facts.
            nonlocal cleared
            defined = networks_in_force(settings).get(network)
            lake = None if defined is None else open_lake(settings, defined)
            if lake is not None and not keeps_lake:
                wait = settings.lock_wait_seconds
                # A bulk run would give the facts of the old chain again.
                with lake.bulk_run(wait), lake.writing(f"reset of network {network}", wait) as opened:
                    # Another shard may have reset before, and given facts of the new chain.
                    if is_same_chain(connection, network, opened):
                        lake.clear(opened)
                        cleared = True

        reset, batch_id = reset_network(connection, network, settings.data_dir / "archive", clear_lake)
        write_progress(connection, settings.data_dir, batch_id)
    return ResetResult(network, reset, cleared)


def run_check(settings: Settings, network: str) -> int:
    """Request a reading of the native balances of a network's wallets; return the number of wallets.

    Raises:
        NothingCollectedError, WriterBusyError: as `run_reset`.
    """
    warehouse = Warehouse(settings)
    nothing = NothingCollectedError(f"no wallet of network {network!r} is tracked; `ledgermart status` lists them")
    if not warehouse.exists():
        raise nothing
    with warehouse.exclusive(f"check of network {network}"), warehouse.open() as connection:
        create_tables(connection)
        wallets = request_native_balances(connection, network)
    if not wallets:
        raise nothing
    return wallets


def print_reset(done: ResetResult, console: Console) -> None:
    """Print the place of the moved facts, and the next step."""
    moved = sum(done.reset.rows.values())
    console.print(f"{moved} rows of {done.network} are in {done.reset.archive}", markup=False)
    if done.is_lake_cleared:
        console.print(
            f"Its facts in the lake are deleted. Run `ledgermart network reset {done.network}` in every other shard."
        )
    console.print("The next cycle collects the network again: `ledgermart cycle`, or the running service by itself.")
