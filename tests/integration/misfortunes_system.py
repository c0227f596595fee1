"""The system that misfortunes happen to: a chain, a service over it, the API on a port, and tenants that call it.

Time is the chain's, also for the API: what a tenant does happens half-way between the newest block and the one to
come, so that every window is known to the block, and two rounds of one script are the same.
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
# Cycles that a provider's passing faults may cost.
_TRIES = 8
_MOST_COLLECTIONS = 40
_WALLETS = 80
# Blocks in one eth_getLogs: few, so that even this short chain is collected in parts.
_MOST_BLOCKS = 20
# The exit code of `ledgermart cycle` when a network failed and all else went well.
_NETWORK_FAILED = 3
# Every cycle publishes, also blocks in which nothing happened, so that what is compared is of the newest block.
_SETTINGS = {"LEDGERMART_RATE_LIMIT_PER_MINUTE": "1000000", "LEDGERMART_AS_OF_SECONDS": "1"}


class SystemFailure(Exception):
    """The round cannot go on; the message says why."""


class _ChainClock:
    """In the place of `datetime` where the control store and the API read the clock."""

    def __init__(self, node: AnvilNode) -> None:
        self._node = node

    def now(self, zone: tzinfo) -> datetime:
        return datetime.fromtimestamp(self._node.block_time(self._node.head()) + BLOCK_SECONDS / 2, zone)


@dataclass
class Span:
    """A tracking window [opened, closed) as the tenant made it, Unix seconds; open while `closed` is None."""

    opened: int
    closed: int | None = None


@dataclass(frozen=True)
class HistoryRequest:
    """A history request as the tenant made it; `path` is the operation's."""

    path: str
    start: str
    end: str
    native: str | None


class Subject:
    """A token or wallet of a tenant, created when this is; and what the tenant did with it, for the comparison.

    Args:
        tenant: whose it is.
        what: a token, or a wallet's address.
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
        """Have it tracked from the next block on."""
        self.spans.append(Span(self._put("enabled")))

    def disable(self) -> None:
        """Have it tracked up to the newest block, and no longer."""
        self.spans[-1].closed = self._put("disabled")

    def _put(self, status: str) -> int:
        moment = int(self.tenant.system.now())
        answer = self.tenant.client.put(f"{self.path}/tracking", {"trackingStatus": status})
        shown = answer["windows"][-1]["from" if status == "enabled" else "to"]
        if datetime.fromisoformat(shown).timestamp() != moment:
            raise SystemFailure(f"{self.label} was {status} at {moment} and the API says {shown}")
        return moment

    def request_history(self, start: str, end: str, native: str | None = None) -> HistoryRequest:
        """Ask for a past range; `native` is the mode of a wallet's native value."""
        body = {"from": start, "to": end, **({} if native is None else {"native": native})}
        answer = self.tenant.client.post(f"{self.path}/history-requests", body)
        made = HistoryRequest(f"{self.path}/history-requests/{answer['id']}", start, end, native)
        self.requests.append(made)
        return made


class Tenant:
    """A tenant with an admin key and a ledger, who uses the API."""

    def __init__(self, system: "System", name: str) -> None:
        self.system = system
        self.name = name
        self.subjects: list[Subject] = []
        self.client = ApiClient(system.api_url, system.service.bearer(system.service.tenant(name)))
        self.client.put("/v1/networks/local/ledgers", {"name": LEDGER, "displayName": "Local"})

    def add(self, what: Token | str, label: str) -> Subject:
        """Create a token or a wallet, not tracked."""
        subject = Subject(self, what, label)
        self.subjects.append(subject)
        return subject

    def remove(self, subject: Subject) -> None:
        """Remove a token or wallet."""
        self.client.delete(subject.path)
        self.subjects.remove(subject)


@dataclass(frozen=True)
class Faults:
    """What the two providers do wrong: both of them `always`, and the first one `by_turns`, a set for each cycle."""

    always: Sequence[Fault]
    by_turns: Sequence[Sequence[Fault]]


def prepare(folder: Path) -> None:
    """Run `ledgermart init` in an empty folder, for stages to be made of copies.

    Raises:
        SystemFailure: it failed; with what it printed.
    """
    service = Service(folder, [LocalNetwork("local", None)])
    service.close()
    done = service.ledgermart("init", "--tenant", "first", "--json")
    if done.returncode != 0:
        raise SystemFailure(f"ledgermart init: {done.returncode}\n{done.stdout}{done.stderr}")


class System:
    """Everything for one round; a context manager that stops what it started.

    Args:
        folder: one that was prepared.
        faults: of the two providers through which the service then reaches the node; None is one honest provider.
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
        """Those there are so far."""
        return list(self._tenants.values())

    def tenant(self, name: str) -> Tenant:
        """Return a tenant, made when first asked for."""
        if name not in self._tenants:
            self._tenants[name] = Tenant(self, name)
            self._open.callback(self._tenants[name].client.close)
        return self._tenants[name]

    def now(self) -> float:
        """What the API's clock shows, Unix seconds."""
        return clock.utc_now().timestamp()

    # What the pipeline does

    def collect(self) -> None:
        """Bring the raw tables up to the head, in this process: nothing is transformed or published."""
        self._until_well(self._try_to_collect)

    def cycle(self) -> None:
        """Run `ledgermart cycle`."""
        self._until_well(self._try_a_cycle)

    def settle(self) -> None:
        """Let the pipeline work until every history request is done with and it asks the providers for no more logs.

        Raises:
            SystemFailure: that takes too long.
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
        """Return the faults that were to pass and did not occur, or not as often as they were to."""
        left = [fault for proxy in self.proxies for fault in proxy.faults() if fault.times is not None]
        return [*left, *(fault for turn in self._turns for fault in turn)]

    def _until_nothing_is_asked(self) -> None:
        """Final ranges are read a second time, some in each cycle."""
        for _ in range(_MOST_COLLECTIONS):
            asked = self._asked()
            self.collect()
            if self._asked() == asked:
                return
        raise SystemFailure(f"{_MOST_COLLECTIONS} collections did not bring all that there is")

    def _asked(self) -> int:
        return sum(proxy.count("eth_getLogs") for proxy in self.proxies)

    def _until_well(self, attempt: Callable[[], tuple[int | None, str | None]]) -> None:
        """Repeat until the node's head is reached without an error; passing faults may cost attempts."""
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
        # The command also fails where a part of history could not be read; what is live is collected all the same.
        return network["head"], None if network["status"] == "Healthy" else result["error"]

    def _command(self, *arguments: str, codes: Sequence[int] = (0,)) -> dict[str, Any]:
        done = self.service.ledgermart(*arguments)
        if done.returncode not in codes:
            raise SystemFailure(f"ledgermart {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return dict(json.loads(done.stdout))
