"""Output of `ledgermart status`.

It is read from the control store, the state of the last cycle and `current.json`, never from the warehouse.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime
from typing import Any

from rich.console import Console

from cli.environment import age
from cli.stores import check_exists
from cli.tables import print_rows
from control import operations, serving, version_pins
from control.instants import write_instant
from control.networks.in_force import networks_in_force, networks_missing
from control.networks.pins import undefined_reason
from control.operations import OperationRow
from control.serving import ShardVersions
from control.settings import Settings
from control.snapshot import read_snapshot
from control.store import open_store
from pipelines.deliver.progress import NetworkProgress, Progress, read_progress
from pipelines.deliver.worker_state import read_worker_state
from warehouse.port import Warehouse


def read_status(settings: Settings) -> dict[str, Any]:
    """Return everything that the command shows, as one object."""
    networks = networks_in_force(settings)
    missing = networks_missing(settings, networks)
    tables: Mapping[str, Sequence[Any]] = {}
    unfinished, pinned, shards = [], set[int](), dict[int, ShardVersions]()
    with closing(open_store(settings)) as store:
        if Warehouse(settings).has_remains():
            check_exists(settings, store)
        if store.is_current():
            with store.read() as session:
                tables = read_snapshot(session, settings.shard).tables
                unfinished = operations.unfinished(session, settings.shard)
                pinned = version_pins.pinned(session, shard=settings.shard)
                shards = serving.read_shards(session) if settings.versions else shards
    progress = read_progress(settings.data_dir)
    publication = Warehouse(settings).published()
    tenants = tables.get("control_tenants", ())
    is_tracked = {w.subject_key for w in tables.get("control_windows", ()) if w.closed_at is None}
    rows = []
    for name in [*networks, *missing]:
        network = networks.get(name)
        subjects = [s for s in tables.get("control_subjects", ()) if s.network == name]
        known = progress.networks.get(name) if progress else None
        # One that was disabled in the last cycle and is not now is known by no cycle yet.
        state = None if known is None or known.status == "Disabled" else known
        status: str
        detail: str | None
        if network is None:
            status, detail = "Undefined", undefined_reason(name)
        elif network.is_enabled:
            status, detail = (state.status, state.detail) if state else ("Unknown", None)
        else:
            status, detail = "Disabled", network.disabled_reason
        rows.append(
            {
                "network": name,
                "status": status,
                "detail": detail,
                "tokens": sum(s.kind == "token" for s in subjects),
                "wallets": sum(s.kind == "wallet" for s in subjects),
                "tracked": sum(s.subject_key in is_tracked for s in subjects),
                "head": known.head if known else None,
                "collectedTo": known.collected_to if known else None,
                "requests": _requests(known),
                "lake": None if settings.lake is None else _lake(known),
            }
        )
    return {
        "isInitialised": bool(tables),
        "tenants": [t.tenant_name for t in tenants],
        "tenantIds": {t.tenant_name: t.tenant_id for t in tenants},
        "networks": rows,
        "priceSources": _price_sources(progress),
        "operations": _operations(tables, unfinished),
        "lastCycle": progress.finished_at if progress else None,
        "writer": Warehouse(settings).writer(),
        "worker": _worker(settings),
        "version": publication.version if publication else None,
        "versionMegabytesMissing": Warehouse(settings).megabytes_missing(pinned),
        "publishedAt": publication.published_at.isoformat() if publication else None,
        "shards": [
            {
                "shard": shard,
                "version": found.in_force,
                "publishedAt": found.served.published_at.isoformat(),
                "versionsKept": len(found.kept),
            }
            for shard, found in shards.items()
        ],
    }


def _requests(known: NetworkProgress | None) -> dict[str, Any] | None:
    """Return the requests to the network's node on the day of the last cycle, and when waiting history resumes."""
    if known is None or known.requests_day is None:
        return None
    return {
        "day": known.requests_day,
        "spent": known.requests,
        "most": known.most_requests,
        "history": None if known.waits_until is None else operations.WAITING_FOR_BUDGET,
        "resumesAt": None if known.waits_until is None else write_instant(known.waits_until),
    }


def _lake(known: NetworkProgress | None) -> dict[str, Any] | None:
    """Return the settled block up to which facts were given to the network's lake; None before the first."""
    if known is None or known.lake_block is None:
        return None
    return {"settledBlock": known.lake_block, "givenAt": known.lake_given_at}


def _worker(settings: Settings) -> dict[str, Any] | None:
    """Return the time at which the worker last checked for work, and what prevents it."""
    state = read_worker_state(settings.data_dir)
    return None if state is None else {"lookedAt": state.looked_at, "trouble": state.trouble}


def _price_sources(progress: Progress | None) -> list[dict[str, Any]]:
    """Return the state after the last cycle of the price sources that pairs use."""
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


def _operations(tables: Mapping[str, Sequence[Any]], unfinished: list[OperationRow]) -> list[dict[str, Any]]:
    """Return unfinished history requests, attestations and price discoveries, the oldest first."""
    tenants = {t.tenant_id: t.tenant_name for t in tables.get("control_tenants", ())}
    moving = {t.tenant_id for t in tables.get("control_held_tenants", ())}
    subjects = {s.subject_key: s for s in tables.get("control_subjects", ())}
    return [
        {
            "operation": operation.id,
            "kind": str(operation.kind),
            "tenant": tenants.get(operation.tenant_id),
            "network": subject.network if subject else None,
            "address": (subject.shown_as or subject.address) if subject else None,
            "from": operation.parameters.get("from"),
            "to": operation.parameters.get("to") or operation.parameters.get("asOf"),
            "status": "WaitingForMove" if operation.tenant_id in moving else operation.presented_status,
            "done": operation.progress_done,
            "total": operation.progress_total,
            "error": operation.error,
            "resumesAt": None if operation.waits_until is None else write_instant(operation.waits_until),
        }
        for operation in unfinished
        for subject in [None if operation.subject_key is None else subjects.get(operation.subject_key)]
    ]


def print_status(found: dict[str, Any], console: Console) -> None:
    """Print the status as text."""
    if not found["isInitialised"]:
        console.print("Nothing is set up yet: run `ledgermart init --tenant NAME`.")
    fields = ("network", "status", "tokens", "wallets", "tracked", "head", "collectedTo", "detail")
    print_rows(
        console,
        [*fields[:-2], "collected to", "detail"],
        [
            [row[name] for name in fields]
            for row in found["networks"]
            if row["status"] != "Disabled" or row["tokens"] or row["wallets"]
        ],
    )
    if found["operations"]:
        print_rows(
            console,
            (
                *(
                    "operation",
                    "kind",
                    "tenant",
                    "network",
                    "address",
                    "from",
                    "to",
                    "status",
                    "done",
                    "total",
                    "error",
                ),
                "resumes at",
            ),
            [list(row.values()) for row in found["operations"]],
        )
    for row in found["networks"]:
        asked = row["requests"]
        if asked and asked["most"] is not None:
            spent = ", ".join(f"{purpose} {requests}" for purpose, requests in asked["spent"].items()) or "none"
            waits = f"; {asked['history']}: history resumes at {asked['resumesAt']}" if asked["history"] else ""
            console.print(f"{row['network']}: requests on {asked['day']}, at most {asked['most']}: {spent}{waits}")
    for row in found["networks"]:
        if lake := row["lake"]:
            given = age(datetime.fromisoformat(lake["givenAt"]))
            console.print(f"{row['network']}: the lake has facts up to block {lake['settledBlock']}, given {given} ago")
    if found["priceSources"]:
        print_rows(
            console,
            ("price source", "polled", "prices", "problems", "error"),
            [
                (
                    row["priceSource"],
                    age(datetime.fromisoformat(row["polledAt"])) + " ago" if row["polledAt"] else "never",
                    row["prices"],
                    row["problems"],
                    row["error"],
                )
                for row in found["priceSources"]
            ],
        )
    disabled = [row["network"] for row in found["networks"] if row["status"] == "Disabled"]
    if disabled:
        console.print(f"disabled because their RPC variable is not set: {', '.join(disabled)}")
    if found["version"] is None:
        console.print("no version is published")
    else:
        console.print(f"version {found['version']}, {age(datetime.fromisoformat(found['publishedAt']))} old")
    for row in found["shards"]:
        published = age(datetime.fromisoformat(row["publishedAt"]))
        console.print(
            f"shard {row['shard']}: API nodes use version {row['version']}, {published} old; "
            f"{row['versionsKept']} versions are in the store"
        )
    if missing := found["versionMegabytesMissing"]:
        console.print(
            f"versions pinned by cursors need {missing} MB more than LEDGERMART_VERSION_DISK_BUDGET_MB; until they "
            "expire, no new paging through cap tables can begin"
        )
    if worker := found["worker"]:
        looked = f"the worker last checked for work {age(datetime.fromisoformat(worker['lookedAt']))} ago"
        console.print(f"{looked}; {worker['trouble']}" if worker["trouble"] else looked)
    if found["writer"]:
        console.print(f"writing now: {found['writer']}")
