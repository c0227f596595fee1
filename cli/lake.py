"""`ledgermart migrate-warehouse` and `ledgermart lake`, and the checks of lakes by `ledgermart doctor`."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from rich.console import Console

from cli.checks import Check
from cli.environment import age
from cli.tables import print_rows
from control.networks.definitions import Network
from control.networks.in_force import networks_in_force
from control.settings import Settings, SettingsError
from pipelines.chain.reset import is_known
from pipelines.deliver.progress import read_progress, write_progress
from pipelines.lake.moving import Moved, move_back, move_to_lake
from pipelines.lake.tables import open_lakes
from pipelines.raw.database import create_tables
from warehouse.extensions import ExtensionError
from warehouse.lakes import Lake, LakeError
from warehouse.port import Warehouse


class UnknownNetwork(Exception):
    """The named network is not defined, is disabled, or has no lake."""


def run_migration(
    settings: Settings, names: Sequence[str], begins: Callable[[str], None], *, is_back: bool
) -> dict[str, Any]:
    """Move the settled facts of networks to their lakes or back, under the lock of the warehouse's writer.

    Args:
        settings: the settings; LEDGERMART_LAKE must be set.
        names: names of the networks; empty for all that have a lake and of which the warehouse holds facts.
        begins: called with a line about each step.
        is_back: take facts from the lakes.

    Returns:
        The object that the command prints with `--json`.

    Raises:
        SettingsError: no lake is configured.
        UnknownNetwork: a network is not defined, has no lake, or is disabled and its facts move back.
        DifferentLakeError, LakeError, ExtractError: as `move_to_lake` and `move_back`.
        WriterBusyError: another process wrote the warehouse for longer than LEDGERMART_LOCK_WAIT_SECONDS.
    """
    networks, lakes = _chosen(settings, names)
    found = []
    warehouse = Warehouse(settings)
    if not warehouse.exists():
        return {"networks": []}
    wait = settings.lock_wait_seconds
    with warehouse.exclusive("migration of the warehouse"), warehouse.open() as connection:
        create_tables(connection)
        for name, lake in lakes.items():
            if not is_known(connection, name):
                continue
            begins(f"{name}: {'taking facts from the lake' if is_back else 'giving facts to the lake'}")

            def stored(blocks: Any, name: str = name) -> None:
                begins(f"{name}: stored blocks {blocks.first} to {blocks.last}")

            if is_back:
                if not networks[name].is_enabled:
                    raise UnknownNetwork(f"network {name!r} is disabled: {networks[name].disabled_reason}")
                moved, batch_id = move_back(connection, networks[name], lake, wait, stored)
                if batch_id is not None:
                    write_progress(connection, settings.data_dir, batch_id)
            else:
                moved = move_to_lake(connection, networks[name], lake, wait, stored)
            begins(f"{name}: {_summary(moved)}")
            found.append(
                {"network": name, "settledBlock": moved.settled, "rows": moved.rows, "compared": moved.compared}
            )
    return {"networks": found}


def _summary(moved: Moved) -> str:
    if moved.settled is None:
        return "no block is settled yet; blocks settle an hour after they are final"
    return f"equal up to block {moved.settled}"


def run_orphans(settings: Settings, names: Sequence[str], *, is_deleted: bool) -> dict[str, Any]:
    """List files of the lakes without an entry in their catalogue, older than LEDGERMART_LAKE_KEEP_DAYS.

    Args:
        settings: the settings; LEDGERMART_LAKE must be set.
        names: names of the networks; empty for all that have a lake.
        is_deleted: delete them.

    Returns:
        The object that the command prints with `--json`.

    Raises:
        SettingsError: no lake is configured.
        UnknownNetwork: a network is not defined, or has no lake.
        LakeError: as `Lake.orphans`.
    """
    _, lakes = _chosen(settings, names)
    keep = timedelta(days=settings.lake_keep_days)
    files = [
        {"network": name, "file": file}
        for name, lake in lakes.items()
        if lake.exists()
        for file in lake.orphans(keep, settings.lock_wait_seconds, is_deleted=is_deleted)
    ]
    return {"isDeleted": is_deleted, "data": files}


def _chosen(settings: Settings, names: Sequence[str]) -> tuple[dict[str, Network], dict[str, Lake]]:
    if settings.lake is None:
        raise SettingsError("no lake is configured; set LEDGERMART_LAKE and LEDGERMART_LAKE_DATA")
    networks = dict(networks_in_force(settings))
    lakes = open_lakes(settings, networks.values())
    for name in names:
        if name not in lakes:
            reason = "has no lake" if name in networks else "is not defined"
            raise UnknownNetwork(f"network {name!r} {reason}; those with lakes are {', '.join(lakes) or 'none'}")
    return networks, {name: lake for name, lake in lakes.items() if not names or name in names}


def print_migration(found: dict[str, Any], console: Console, *, is_back: bool) -> None:
    """Print the compared rows of each network, and the next step."""
    rows = [
        (network["network"], network["settledBlock"], network["rows"], sum(network["compared"].values()))
        for network in found["networks"]
    ]
    print_rows(console, ("network", "settled block", "rows added", "rows compared"), rows)
    if not rows:
        console.print("the warehouse holds no facts of a network with a lake")
    elif is_back:
        console.print("The warehouse has all facts of its tokens and wallets: LEDGERMART_LAKE may be unset.")
    else:
        console.print("Facts of later blocks follow with each cycle, an hour after their block is final.")


def print_orphans(found: dict[str, Any], console: Console) -> None:
    """Print the files, and how to delete them."""
    if not found["data"]:
        console.print("there are no orphaned files")
        return
    print_rows(console, ("network", "file"), [tuple(row.values()) for row in found["data"]])
    if found["isDeleted"]:
        console.print(f"deleted {len(found['data'])} files")
    else:
        console.print("`ledgermart lake orphans --delete` deletes them; after a restore of the catalogue, wait a week")


def examine_lakes(settings: Settings, networks: Iterable[Network]) -> list[Check]:
    """Check the lakes of these networks: catalogue, lock, store and columns; change nothing."""
    progress = read_progress(settings.data_dir)
    checks = []
    for name, lake in open_lakes(settings, networks).items():
        known = progress.networks.get(name) if progress else None
        given = "this shard has given no facts yet"
        if known is not None and known.lake_block is not None and known.lake_given_at is not None:
            given = f"facts up to block {known.lake_block}, {age(datetime.fromisoformat(known.lake_given_at))} ago"
        try:
            lake.check_lock()
            lake.check_store()
            if lake.exists():
                with lake.open(is_read_only=True):
                    checks.append(Check(f"lake {name}", "ok", given))
            else:
                checks.append(Check(f"lake {name}", "note", "does not exist yet; the next cycle creates it"))
        except (LakeError, ExtensionError) as error:
            checks.append(Check(f"lake {name}", "wrong", str(error)))
    return checks
