"""`ledgermart doctor`: check that this machine, the settings and the nodes can run the service."""

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from rich.console import Console

from cli.checks import Check, Verdict
from cli.data_folder import check_socket, check_writable
from cli.deep import examine_files, examine_past
from cli.environment import age
from cli.exit_codes import EXIT_FAILED
from cli.lake import examine_lakes
from cli.logs import MOST_BYTES, OLDER_PARTS
from cli.ports import find_exposure, find_unusable, ports_of
from cli.stores import lost_beside_warehouse
from cli.tables import print_rows
from control import serving, tenants
from control.errors import StoreUnavailable
from control.networks.definitions import Network, load_networks
from control.networks.in_force import networks_in_force, networks_missing
from control.networks.pins import undefined_reason
from control.resources import REPORTS
from control.settings import Settings, SettingsError, unknown_variables
from control.store import open_store
from pipelines.defs.records import find_damaged
from pipelines.deliver.backup import BackupError
from pipelines.deliver.restore import check_finished
from pipelines.extract.errors import ExtractError
from pipelines.extract.families import open_node
from pipelines.extract.family import PAST_BALANCES, TRACES
from pipelines.raw.lost import find_lost
from warehouse.lock import describe_holder, is_locked
from warehouse.port import SharingError, Warehouse

# A slower node is too slow for live tracking.
NODE_TIMEOUT = (3.0, 5.0)
NODE_SECONDS = 15.0
_LEAST_FREE_MEGABYTES = 1_000
_PACKAGES = ("ledgermart", "duckdb", "dagster", "dbt-core", "litestar", "pandas")


@dataclass
class NodeCheck:
    """Result of the check of one URL of a network; None for values that were not read."""

    network: str
    chain_id: int | None
    provider: str
    verdict: Verdict = "wrong"
    detail: str = f"no response within {NODE_SECONDS:.0f} s; check the address and the provider"
    head: int | None = None
    head_age: str | None = None
    archive: bool | None = None
    traces: bool | None = None
    latency_ms: int | None = None


@dataclass(frozen=True)
class Diagnosis:
    """Results of all checks."""

    checks: Sequence[Check]
    nodes: Sequence[NodeCheck]

    @property
    def wrong(self) -> int:
        """Number of checks and nodes that need a fix."""
        verdicts = [check.verdict for check in self.checks] + [node.verdict for node in self.nodes]
        return verdicts.count("wrong")

    @property
    def exit_code(self) -> int:
        """0 if nothing needs a fix, else 1."""
        return EXIT_FAILED if self.wrong else 0

    def as_json(self) -> dict[str, Any]:
        """The object that `ledgermart doctor --json` prints."""
        names = {"chain_id": "chainId", "head_age": "headAge", "latency_ms": "latencyMilliseconds"}
        return {
            "exitCode": self.exit_code,
            "checks": [asdict(check) for check in self.checks],
            "nodes": [{names.get(name, name): value for name, value in asdict(node).items()} for node in self.nodes],
        }


@dataclass(frozen=True)
class Deep:
    """Options of the complete check of all files.

    Attributes:
        backup: a backup to check as well.
        on_wait: called with the name of the writer of the warehouse that must end first.
    """

    backup: Path | None
    on_wait: Callable[[str], None]


def diagnose(settings: Settings, chosen: Sequence[str], deep: Deep | None = None) -> Diagnosis:
    """Check everything that the service needs; change nothing.

    Args:
        settings: the settings to check.
        chosen: names of the networks to check; empty for all that are enabled.
        deep: read every file completely; without it, files are only opened.

    Raises:
        UnknownNetwork: a network is not defined.
    """
    checks = [_versions(), _programs(), *_variables(), *_folder(settings), _logs(settings)]
    try:
        networks = networks_in_force(settings)
        store = _store(settings)
        checks.append(store)
        if store.verdict == "ok" and (lost := find_lost(settings)):
            checks.append(Check("warehouse", "wrong", str(lost)))
        missing = networks_missing(settings, networks)
        checks += [Check(f"network {name}", "wrong", undefined_reason(name)) for name in missing]
    except StoreUnavailable as error:
        networks = load_networks(settings.networks_file)
        checks.append(Check("control store", "wrong", str(error)))
    checks.append(_restore(settings))
    if settings.versions is not None:
        checks.append(check_shared_versions(settings))
    files = _files(settings) if deep is None else examine_files(settings, deep.backup, deep.on_wait)
    checks += [_published(settings), *files, *_ports(settings), _exposure(settings)]
    for name in chosen:
        if name not in networks:
            raise UnknownNetwork(f"network {name!r} is not defined; there are {', '.join(networks)}")
    asked = [network for name, network in networks.items() if name in chosen or (not chosen and network.is_enabled)]
    disabled = {n.name: str(n.disabled_reason) for n in (asked if chosen else networks.values()) if not n.is_enabled}
    if chosen:
        checks += [Check(f"network {name}", "wrong", f"disabled: {reason}") for name, reason in disabled.items()]
    elif not asked:
        checks.append(Check("networks", "note", "all are disabled, so nothing is collected; set the variable of one"))
    else:
        checks.append(Check("networks", "ok", f"{len(asked)} enabled; disabled: {', '.join(disabled) or 'none'}"))
    checks += examine_lakes(settings, asked)
    nodes = _nodes([network for network in asked if network.is_enabled])
    if deep is not None:
        checks.append(examine_past(settings, {node.network for node in nodes if not node.archive}))
    return Diagnosis(checks, nodes)


class UnknownNetwork(Exception):
    """The named network is not defined."""


def _versions() -> Check:
    """Check the versions of installed packages, which installing another package may have changed."""
    for requirement in map(Requirement, requires("ledgermart") or ()):
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            found = version(requirement.name)
        except PackageNotFoundError:
            found = "no version"
        if found == "no version" or found not in requirement.specifier:
            fix = f"the service needs {requirement}; run `{sys.executable} -m pip install '{requirement}'`"
            return Check("versions", "wrong", f"{requirement.name} {found} is installed, {fix}")
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    return Check("versions", "ok", f"Python {sys.version.split()[0]}, {packages}")


def _restore(settings: Settings) -> Check:
    try:
        check_finished(settings)
    except BackupError as error:
        return Check("restore", "wrong", str(error))
    return Check("restore", "ok", "none was interrupted")


def _programs() -> Check:
    """Check the files and programs of `make install` and of the system."""
    if shutil.which("setpriv") is None:
        return Check("programs", "wrong", "setpriv is missing; install the package util-linux")
    if not (REPORTS / "index.html").exists():
        return Check("programs", "wrong", "the pages of the reports are not built; run `make install`")
    return Check("programs", "ok", "setpriv is installed, the pages of the reports are built")


def _folder(settings: Settings) -> list[Check]:
    """Check the data folder, which every command creates, and its disk."""
    free = shutil.disk_usage(settings.data_dir).free // 1_000_000
    space = f"{free:,} MB free"
    if free < _LEAST_FREE_MEGABYTES:
        disk = Check("disk", "wrong", f"{space}; free at least {_LEAST_FREE_MEGABYTES:,} MB")
    elif free < settings.version_disk_budget_mb:
        budget = f"published versions may take {settings.version_disk_budget_mb:,} MB"
        disk = Check("disk", "note", f"{space}; {budget}, see LEDGERMART_VERSION_DISK_BUDGET_MB")
    else:
        disk = Check("disk", "ok", space)
    try:
        check_writable(settings)
        check_socket(settings)
    except SettingsError as error:
        return [Check("data folder", "wrong", str(error)), disk]
    return [Check("data folder", "ok", str(settings.data_dir)), disk]


def _variables() -> list[Check]:
    """Name variables that look like settings and have no effect."""
    return [Check(f"variable {name}", "note", reason) for name, reason in unknown_variables(os.environ).items()]


def _logs(settings: Settings) -> Check:
    """Report the size of the logs and its bound."""
    found = list((settings.data_dir / "logs").glob("*.log*"))
    size = sum(path.stat().st_size for path in found) // 1_000_000
    most = MOST_BYTES * (OLDER_PARTS + 1) // 1_000_000
    return Check("logs", "ok", f"{size:,} MB in {len(found)} files; each log takes at most {most:,} MB")


def _store(settings: Settings) -> Check:
    with closing(open_store(settings)) as store:
        if not store.exists() and Warehouse(settings).has_remains():
            return Check("control store", "wrong", lost_beside_warehouse(settings, store))
        if store.exists() and (damage := store.damage()):
            return Check("control store", "wrong", damage)
        if not store.is_current():
            return Check("control store", "note", "missing, or from an earlier release; run `ledgermart init`")
        with store.read() as session:
            if not tenants.exists(session):
                return Check("control store", "note", "no tenant yet; run `ledgermart init --tenant NAME`")
    return Check("control store", "ok", "reachable, from this release, has a tenant")


def _published(settings: Settings) -> Check:
    publication = Warehouse(settings).published()
    if publication is None:
        return Check("published", "note", "no version yet; run `ledgermart init` to publish the first")
    return Check("published", "ok", f"version {publication.version}, {age(publication.published_at)} old")


def check_shared_versions(settings: Settings) -> Check:
    """Put, fetch and delete an object in the store of versions, and read the records of versions."""
    # Imported only where it is configured.
    from warehouse.shared import try_store

    name = "store of versions"
    try:
        try_store(settings)
        with closing(open_store(settings)) as store, store.read() as session:
            shards = serving.read_shards(session)
    except (SharingError, StoreUnavailable) as error:
        fix = "check LEDGERMART_VERSIONS, AWS_ENDPOINT_URL and the variables of the access key"
        return Check(name, "wrong", f"{error}; {fix if isinstance(error, SharingError) else 'check the control store'}")
    versions = ", ".join(f"shard {shard}: version {found.in_force}" for shard, found in shards.items())
    return Check(name, "ok", f"an object was stored, fetched and deleted; {versions or 'no version yet'}")


def _files(settings: Settings) -> list[Check]:
    """Open every file of the warehouse and of Dagster's records, as far as no process writes it."""
    found = Warehouse(settings).damage()
    if not is_locked(settings.data_dir / "up.lock") and (damaged := find_damaged(settings.dagster_dir)):
        found.append(f"{damaged} is damaged; the next `ledgermart cycle` or `ledgermart up` begins new records of runs")
    return [Check("files", "wrong", words) for words in found] or [Check("files", "ok", "none is damaged")]


def _ports(settings: Settings) -> list[Check]:
    """Check the ports; those of a service that runs on the same data folder may be in use."""
    lock = settings.data_dir / "up.lock"
    if is_locked(lock):
        return [Check("ports", "ok", f"in use by the service itself: {describe_holder(lock)}")]
    ports = ports_of(settings)
    if not (unusable := find_unusable(ports)):
        return [Check("ports", "ok", f"free: {', '.join(f'{port.name} {port.number}' for port in ports)}")]
    return [Check(f"port of {port.name}", "wrong", f"{port.variable}: {why}") for port, why in unusable.items()]


def _exposure(settings: Settings) -> Check:
    """Check that other machines reach the API only if a setting allows it."""
    reason = find_exposure(settings, settings.api_host)
    if reason is not None:
        return Check("API host", "wrong", f"LEDGERMART_API_HOST: {reason}")
    if settings.api_public:
        return Check("API host", "note", "LEDGERMART_API_PUBLIC=yes: other machines may reach the API without a proxy")
    return Check("API host", "ok", "no other machine reaches the API directly")


def _nodes(networks: Sequence[Network]) -> list[NodeCheck]:
    """Check every URL of the networks in parallel, for a limited time."""
    checks, threads = [], []
    for network in networks:
        for url in network.rpc_urls:
            check = NodeCheck(network.name, network.chain_id, "")
            # A daemon thread, so that a node that never responds does not keep the process alive.
            thread = threading.Thread(target=_ask, args=(replace(network, rpc_urls=(url,)), check), daemon=True)
            thread.start()
            checks.append(check)
            threads.append(thread)
    deadline = time.monotonic() + NODE_SECONDS
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0.0))
    # Copies, so that a late thread changes nothing.
    return [replace(check) for check in checks]


def _ask(network: Network, check: NodeCheck) -> None:
    with closing(open_node(network, timeout=NODE_TIMEOUT, max_attempts=1)) as node:
        check.provider = node.provider
        try:
            can = node.probe()
            began_at = time.monotonic()
            head = node.head()
        except ExtractError as error:
            check.detail = f"{error.detail}; its words: {error.words}" if error.words else error.detail
            return
        check.latency_ms = round((time.monotonic() - began_at) * 1000)
        check.head, check.head_age = head.number, age(head.time)
        check.archive, check.traces = PAST_BALANCES in can, TRACES in can
        missing = [
            *([] if check.archive else ["no archive: past balances cannot be read"]),
            *([] if check.traces else ["no traces: native value moved inside transactions appears as `Internal` sums"]),
        ]
        check.verdict, check.detail = ("note", "; ".join(missing)) if missing else ("ok", "")


def print_diagnosis(found: Diagnosis, console: Console) -> None:
    """Print the checks as text."""
    print_rows(console, ("check", "result", "detail"), [(one.check, one.verdict, one.detail) for one in found.checks])
    if found.nodes:
        console.print()
        print_rows(
            console,
            ("network", "node", "chain id", "head", "age", "archive", "traces", "latency", "result", "detail"),
            [
                (
                    *(node.network, node.provider, node.chain_id, node.head, node.head_age),
                    *(_yes_no(node.archive), _yes_no(node.traces)),
                    None if node.latency_ms is None else f"{node.latency_ms} ms",
                    *(node.verdict, node.detail),
                )
                for node in found.nodes
            ],
        )
    console.print(f"\nproblems: {found.wrong}" if found.wrong else "\nno problems")


def _yes_no(answer: bool | None) -> str | None:
    return None if answer is None else "yes" if answer else "no"
