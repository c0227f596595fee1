"""What `ledgermart status` shows: from the control store, the last cycle and the pointer; never the warehouse."""

from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from cli.environment import age
from control.networks.in_force import networks_in_force
from control.settings import Settings
from control.snapshot import read_snapshot
from control.store import open_store
from pipelines.load.lock import describe_holder, is_locked
from pipelines.progress import Progress, read_progress
from pipelines.publish import current_publication


def read_status(settings: Settings) -> dict[str, Any]:
    """Everything that the command shows, as one object."""
    networks = networks_in_force(settings)
    store = open_store(settings)
    snapshot = None
    if store.is_current():
        with store.read() as session:
            snapshot = read_snapshot(session)
    progress = read_progress(settings.data_dir)
    publication = current_publication(settings.serving_dir)
    is_tracked = {w.subject_key for w in snapshot.windows if w.closed_at is None} if snapshot else set()
    rows = []
    for name, network in networks.items():
        subjects = [s for s in snapshot.subjects if s.network == name] if snapshot else []
        known = progress.networks.get(name) if progress else None
        rows.append(
            {
                "network": name,
                "status": (known.status if known else "Unknown") if network.is_enabled else "Disabled",
                "detail": (known.detail if known else None) if network.is_enabled else network.disabled_reason,
                "tokens": sum(s.kind == "token" for s in subjects),
                "wallets": sum(s.kind == "wallet" for s in subjects),
                "tracked": sum(s.subject_key in is_tracked for s in subjects),
                "head": known.head if known else None,
                "collectedTo": known.collected_to if known else None,
            }
        )
    return {
        "isInitialised": snapshot is not None,
        "tenants": [t.tenant_name for t in snapshot.tenants] if snapshot else [],
        "tenantIds": {t.tenant_name: t.tenant_id for t in snapshot.tenants} if snapshot else {},
        "networks": rows,
        "priceSources": _price_sources(progress),
        "lastCycle": progress.finished_at if progress else None,
        "writer": describe_holder(settings.lock_path) if is_locked(settings.lock_path) else None,
        "version": publication.version if publication else None,
        "publishedAt": publication.published_at.isoformat() if publication else None,
    }


def _price_sources(progress: Progress | None) -> list[dict[str, Any]]:
    """The price sources that pairs use, as the last cycle left them."""
    return [
        {
            "priceSource": source,
            "polledAt": state.polled_at,
            "prices": state.prices,
            "problems": state.problems,
            "error": state.trouble,
        }
        for source, state in (progress.price_sources.items() if progress else ())
    ]


def print_status(found: dict[str, Any], console: Console) -> None:
    """Print the status for people."""
    if not found["isInitialised"]:
        console.print("Nothing is set up yet: run `ledgermart init --tenant NAME`.")
    table = Table("network", "status", "tokens", "wallets", "tracked", "head", "collected to", "detail", box=None)
    for row in found["networks"]:
        if row["status"] != "Disabled" or row["tokens"] or row["wallets"]:
            cells = [row[name] for name in ("network", "status", "tokens", "wallets", "tracked")]
            cells += [row["head"], row["collectedTo"], row["detail"]]
            table.add_row(*("" if cell is None else str(cell) for cell in cells))
    console.print(table)
    if found["priceSources"]:
        sources = Table("price source", "polled", "prices", "problems", "error", box=None)
        for row in found["priceSources"]:
            polled = age(datetime.fromisoformat(row["polledAt"])) + " ago" if row["polledAt"] else "never"
            sources.add_row(row["priceSource"], polled, str(row["prices"]), str(row["problems"]), row["error"] or "")
        console.print(sources)
    disabled = [row["network"] for row in found["networks"] if row["status"] == "Disabled"]
    if disabled:
        console.print(f"disabled, their RPC variable is not set: {', '.join(disabled)}")
    if found["version"] is None:
        console.print("no version is published")
    else:
        console.print(f"version {found['version']}, {age(datetime.fromisoformat(found['publishedAt']))} old")
    if found["writer"]:
        console.print(f"at work: {found['writer']}")
