"""The system under test for misfortunes: a chain, a service over it, the API on a port, and tenants as its clients.

The API also uses the chain's time: tenants act half-way between the newest block and the next one. So the first and
last block of every window are known, and two rounds of one script are equal.
"""

import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from unittest import mock

from control import clock
from tests.chain.conftest import GENESIS_TIME
from tests.chain.fault_proxy import Fault, FaultProxy
from tests.chain.node import AnvilNode
from tests.chain.world import Token, World
from tests.e2e.client import ApiClient
from tests.e2e.serving import serving
from tests.integration.harness import LocalNetwork, Service

LEDGER = "local"
BLOCK_SECONDS = 12
# Attempts per collection or cycle behind faulty providers.
_TRIES = 8
_MOST_COLLECTIONS = 40
_WALLETS = 80
# Blocks in one eth_getLogs: small enough for this short chain to be collected in parts.
_MOST_BLOCKS = 20
# Exit code of `ledgermart cycle` if only a network failed.
_NETWORK_FAILED = 3
# Every cycle publishes, even after empty blocks, so that comparisons are at the newest block.
_SETTINGS = {"LEDGERMART_RATE_LIMIT_PER_MINUTE": "1000000", "LEDGERMART_AS_OF_SECONDS": "1"}


class SystemFailure(Exception):
    """The round cannot continue; the message says why."""


class _ChainClock:
    """Substitute for `datetime` in `control.clock`, from which the control store and the API read the time."""

    def __init__(self, node: AnvilNode) -> None:
        self._node = node

    def now(self, zone: tzinfo) -> datetime:
        return datetime.fromtimestamp(self._node.block_time(self._node.head()) + BLOCK_SECONDS / 2, zone)


@dataclass
class Span:
    """A tracking window [opened, closed) in Unix seconds; open while `closed` is None."""

    opened: int
    closed: int | None = None


@dataclass(frozen=True)
class HistoryRequest:
    """A tenant's history request; `path` is the path of its operation."""

    path: str
    start: str
    end: str
    native: str | None


class Subject:
    """A token or wallet of a tenant, with a record of the tenant's actions for the comparison.

    The constructor creates it through the API.

    Args:
        tenant: its owner.
        what: token, or address of a wallet.
        label: name in tables and problems.
    """

    def __init__(self, tenant: "Tenant", what: Token | str, label: str) -> None:
        self.tenant = tenant
        self.token = what if isinstance(what, Token) else None
        self.address = what.address if isinstance(what, Token) else what
        self.label = f"{tenant.name}'s {label}"
        self.spans: list[Span] = []
        self.requests: list[HistoryRequest] = []
        self.configured_before = {other.address for other in tenant.subjects if other.token is not None}
        body = {"ledger": LEDGER, "ledgerId": self.address, "name": label}
        if self.token is not None:
            body["symbol"] = self.token.symbol or "NONE"
        self.kind = "wallets" if self.token is None else "tokens"
        self.id = str(tenant.client.post(f"/v1/{self.kind}", body)["id"])
        self.path = f"/v1/{self.kind}/{self.id}"

    def enable(self) -> None:
        """Enable tracking from the next block on."""
        self.spans.append(Span(self._put("enabled")))

    def disable(self) -> None:
        """Disable tracking after the newest block."""
        self.spans[-1].closed = self._put("disabled")

    def _put(self, status: str) -> int:
        moment = int(self.tenant.system.now())
        answer = self.tenant.client.put(f"{self.path}/tracking", {"trackingStatus": status})
        shown = answer["windows"][-1]["from" if status == "enabled" else "to"]
        if datetime.fromisoformat(shown).timestamp() != moment:
            raise SystemFailure(f"{self.label} was {status} at {moment} and the API says {shown}")
        return moment

    def request_history(self, start: str, end: str, native: str | None = None) -> HistoryRequest:
        """Request a past range; `native` is the mode of a wallet's native value."""
        body = {"from": start, "to": end, **({} if native is None else {"native": native})}
        answer = self.tenant.client.post(f"{self.path}/history-requests", body)
        made = HistoryRequest(f"{self.path}/history-requests/{answer['id']}", start, end, native)
        self.requests.append(made)
        return made


class Tenant:
    """A tenant with an admin key and a ledger that uses the API."""

    def __init__(self, system: "System", name: str) -> None:
        self.system = system
        self.name = name
        self.subjects: list[Subject] = []
        self.client = ApiClient(system.api_url, system.service.bearer(system.service.tenant(name)))
        self.client.put("/v1/networks/local/ledgers", {"name": LEDGER, "displayName": "Local"})

    def add(self, what: Token | str, label: str) -> Subject:
        """Create a token or a wallet without tracking."""
        subject = Subject(self, what, label)
        self.subjects.append(subject)
        return subject

    def remove(self, subject: Subject) -> None:
        """Remove a token or wallet."""
        self.client.delete(subject.path)
        self.subjects.remove(subject)


@dataclass(frozen=True)
class Faults:
    """Faults of the two providers: `always` for both, `by_turns` for the first one, a set for each cycle."""

    always: Sequence[Fault]
    by_turns: Sequence[Sequence[Fault]]


def prepare(folder: Path) -> None:
    """Run `ledgermart init` in an empty folder, as a template for stages.

    Raises:
        SystemFailure: the command failed; the message contains its output.
    """
    service = Service(folder, [LocalNetwork("local", None)])
    service.close()
    done = service.ledgermart("init", "--tenant", "first", "--json")
    if done.returncode != 0:
        raise SystemFailure(f"ledgermart init: {done.returncode}\n{done.stdout}{done.stderr}")


class System:
    """The environment of one round; a context manager that stops all that it started.

    Args:
        folder: a prepared folder.
        faults: faults of the two providers between service and node; None: one honest provider.
    """

    def __init__(self, folder: Path, faults: Faults | None = None) -> None:
        self._folder = folder
        self._faults = faults
        self._turns = iter(faults.by_turns if faults else ())
        self._open = contextlib.ExitStack()
        self._tenants: dict[str, Tenant] = {}

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as opening:
            self.node = opening.enter_context(AnvilNode(genesis_time=GENESIS_TIME))
            self.world = World(self.node, wallet_count=_WALLETS, block_seconds=BLOCK_SECONDS, gas_price=10**9)
            self.world.place_multicall()
            self.proxies = [opening.enter_context(FaultProxy(self.node.url)) for _ in range(2 if self._faults else 1)]
            if self._faults is not None:
                for proxy in self.proxies:
                    proxy.inject(*self._faults.always)
            url, second_url = self.proxies[0].url, self.proxies[1].url if len(self.proxies) > 1 else None
            network = LocalNetwork("local", url, max_log_range=_MOST_BLOCKS, second_url=second_url)
            self.service = Service(self._folder, [network], _SETTINGS)
            opening.callback(self.service.close)
            opening.enter_context(mock.patch.object(clock, "datetime", _ChainClock(self.node)))
            self.api_url = opening.enter_context(serving(self.service.settings))
            self._open = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @property
    def tenants(self) -> list[Tenant]:
        """The tenants created so far."""
        return list(self._tenants.values())

    def tenant(self, name: str) -> Tenant:
        """Return a tenant; create it on the first call."""
        if name not in self._tenants:
            self._tenants[name] = Tenant(self, name)
            self._open.callback(self._tenants[name].client.close)
        return self._tenants[name]

    def now(self) -> float:
        """Return the time of the API's clock in Unix seconds."""
        return clock.utc_now().timestamp()

    # The pipeline

    def collect(self) -> None:
        """Collect raw tables up to the head in this process, without transforming or publishing."""
        self._until_well(self._try_to_collect)

    def cycle(self) -> None:
        """Run `ledgermart cycle`."""
        self._until_well(self._try_a_cycle)

    def settle(self) -> None:
        """Run the pipeline until all history requests have ended and it requests no more logs from the providers.

        Raises:
            SystemFailure: the pipeline is not idle after the maximal number of cycles.
        """
        for _ in range(_TRIES):
            self._until_nothing_is_asked()
            asked = self._asked()
            self.cycle()
            waiting = [
                f"{subject.label}: {request.start} to {request.end}"
                for tenant in self.tenants
                for subject in tenant.subjects
                for request in subject.requests
                if tenant.client.get(request.path)["status"] in ("Pending", "Running")
            ]
            if not waiting and self._asked() == asked:
                return
        raise SystemFailure(f"the service is not idle after {_TRIES} cycles; history requests under way: {waiting}")

    def unused_faults(self) -> list[Fault]:
        """Return the temporary faults that did not occur as often as planned."""
        left = [fault for proxy in self.proxies for fault in proxy.faults() if fault.times is not None]
        return [*left, *(fault for turn in self._turns for fault in turn)]

    def _until_nothing_is_asked(self) -> None:
        """Collect until no logs are requested: each cycle reads some of the final ranges a second time."""
        for _ in range(_MOST_COLLECTIONS):
            asked = self._asked()
            self.collect()
            if self._asked() == asked:
                return
        raise SystemFailure(f"{_MOST_COLLECTIONS} collections did not bring all that there is")

    def _asked(self) -> int:
        return sum(proxy.count("eth_getLogs") for proxy in self.proxies)

    def _until_well(self, attempt: Callable[[], tuple[int | None, str | None]]) -> None:
        """Repeat until the node's head is reached without an error; temporary faults may cost attempts."""
        self.proxies[0].inject(*next(self._turns, ()))
        failures = []
        for _ in range(_TRIES if self._faults else 1):
            head, error = attempt()
            if error is None and head == self.node.head():
                return
            failures.append(error or f"collected up to block {head}, and the node is at {self.node.head()}")
        raise SystemFailure("\n".join(failures))

    def _try_to_collect(self) -> tuple[int | None, str | None]:
        report = self.service.cycle()
        return report.head, report.error

    def _try_a_cycle(self) -> tuple[int | None, str | None]:
        result = self._command("cycle", "--json", codes=(0, _NETWORK_FAILED))
        network = result["networks"].get("local", {"head": None, "status": "Unknown"})
        # The command also fails if a part of a history could not be read, but still collects live tracking.
        return network["head"], None if network["status"] == "Healthy" else result["error"]

    def _command(self, *arguments: str, codes: Sequence[int] = (0,)) -> dict[str, Any]:
        done = self.service.ledgermart(*arguments)
        if done.returncode not in codes:
            raise SystemFailure(f"ledgermart {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return dict(json.loads(done.stdout))
