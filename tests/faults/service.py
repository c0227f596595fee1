"""A chain, a price source and the whole service under load, with the rules for recovery and loss."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Self

from control import access, tenants
from control.settings import load_settings
from control.store import open_store
from tests.chain.fault_proxy import FaultProxy
from tests.chain.node import AnvilNode
from tests.chain.world import World
from tests.e2e.checks import check_token_activities, first_block_at
from tests.e2e.client import ApiClient, ApiError
from tests.e2e.service import Service, ServiceError
from tests.faults.load import Load, Tenant, lost_writes
from tests.prices.exchange_server import ExchangeServer
from tests.prices.model import ScriptedMarket
from tests.unit.control.postgres import Server, new_database, start_postgres, stop_postgres

TENANTS = ("first", "second")
CYCLE_SECONDS = 3
_ROLES = 6  # `ledgermart up`, API, worker, code server, daemon, web server
_START_SECONDS = 120.0
_FIRST_SECONDS = 240.0
_BLOCK_SECONDS = 1.0
_TRANSFERS = 4
_PAST_BLOCKS = 30
# Block times of the set-up are a second apart, and must lie in the past.
_SET_UP_SECONDS = 1_000
_PAGE = 1_000
_POLL_SECONDS = 0.5
_REST_SECONDS = 3.0
# Published files are copies of the marts: a day of cycles would fill the disk.
_VERSION_GRACE_SECONDS = 60


@dataclass(frozen=True)
class Mark:
    """A moment: what happens after it shows that the service works again."""

    block: int
    monotonic: float
    time: datetime


class _FreePorts(Service):
    preferred_ports = (None, None)


class LoadedService:
    """Everything together; a context manager.

    Args:
        folder: empty; everything is below it.
        needs_postgres: the control store is a database of a PostgreSQL server, which ends with the service.
        add_load: adds threads to the load before it starts.
    """

    def __init__(
        self,
        folder: Path,
        needs_postgres: bool = False,
        add_load: "Callable[[LoadedService], None] | None" = None,
    ) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.backup = folder / "backup"
        self.message = ""
        """Output of the last start of the service that failed."""
        self.started_at = 0.0
        """Monotonic time at which the last start of the service began."""
        self.tenants: list[Tenant] = []
        self.server: Server | None = None
        self.needs_postgres = needs_postgres
        self._add_load = add_load
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._enter(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _enter(self, stack: ExitStack) -> None:
        self.folder.mkdir(parents=True)
        self.node = stack.enter_context(AnvilNode(genesis_time=int(time.time()) - _SET_UP_SECONDS))
        self.world = World(self.node, wallet_count=12, block_seconds=1, gas_price=10**9)
        self.world.place_multicall()
        self.tokens = [self.world.deploy_token("GOLD", 18), self.world.deploy_token("TIN", 0)]
        for token in self.tokens:
            self.world.distribute(token, 10**6)
        self.world.transfer_many(4 * _PAST_BLOCKS, self.tokens, per_block=4)
        self.proxy = stack.enter_context(FaultProxy(self.node.url))
        self.exchange = stack.enter_context(
            ExchangeServer([ScriptedMarket("BTC", "USD", lambda now: Decimal(int(now.timestamp())))])
        )
        own = {
            "LEDGERMART_CYCLE_SECONDS": str(CYCLE_SECONDS),
            "LEDGERMART_PRICE_POLL_SECONDS": str(CYCLE_SECONDS),
            "LEDGERMART_VERSION_GRACE_SECONDS": str(_VERSION_GRACE_SECONDS),
            "LEDGERMART_PRICE_SOURCES": str(self.exchange.write_definitions(self.folder / "sources.toml", ["kraken"])),
        }
        if self.needs_postgres:
            self.server = start_postgres()
            stack.callback(stop_postgres, self.server)
            own["LEDGERMART_CONTROL_URL"] = stack.enter_context(new_database(self.server["url"], "faults"))
        self.service = stack.enter_context(_FreePorts(self.data, self.proxy.url, own))
        first, *others = TENANTS
        keys = {first: self.service.init(first), **self._add_tenants(others)}
        self.service.start(_FIRST_SECONDS)
        self.tenants = [self._set_up(name, key) for name, key in keys.items()]
        self.load = Load(self.service.api_url, self.tenants)
        self.load.add(self._mine)
        if self._add_load is not None:
            self._add_load(self)
        stack.enter_context(self.load)

    def settle(self) -> None:
        """Wait until everything works for the first time.

        Raises:
            ServiceError: it does not in time.
        """
        if not self.wait_for_recovery(self.mark(), _FIRST_SECONDS):
            raise ServiceError(f"nothing right was published in {_FIRST_SECONDS:.0f} s.\n{self.service.log_tail()}")

    def client(self, tenant: Tenant) -> ApiClient:
        """Return a client with the tenant's key, to be closed."""
        return ApiClient(self.service.api_url, tenant.key, 60)

    # Set-up

    def _add_tenants(self, names: Sequence[str]) -> dict[str, str]:
        """Create further tenants, and return their keys; a command for each would take as long as the first one."""
        with closing(open_store(load_settings(self.service.environment))) as store, store.write() as session:
            created = {name: tenants.create(session, name) for name in names}
            return {
                name: access.create_key(session, tenant.id, access.Role.ADMIN)[1] for name, tenant in created.items()
            }

    def _set_up(self, name: str, key: str) -> Tenant:
        tenant = Tenant(name, key, ledger=f"{name}-chain")
        opened = {}
        with self.client(tenant) as client:
            client.put("/v1/networks/local/ledgers", {"name": tenant.ledger, "displayName": name})
            for token in self.tokens:
                body = {"ledger": tenant.ledger, "symbol": token.symbol, "ledgerId": token.address}
                path = f"/v1/tokens/{client.post('/v1/tokens', body)['id']}"
                tenant.tokens[token.address] = path
                answer = client.put(f"{path}/tracking", {"trackingStatus": "enabled"})
                opened[token.address] = answer["windows"][-1]["from"]
            for wallet in self.world.wallets[:2]:
                path = f"/v1/wallets/{client.post('/v1/wallets', {'ledger': tenant.ledger, 'ledgerId': wallet})['id']}"
                tenant.wallets.append(path)
                client.put(f"{path}/tracking", {"trackingStatus": "enabled"})
            for symbol in ("USD", "BTC", "FUND"):
                client.post("/v1/priced-items", {"name": symbol, "symbol": symbol, "class": "Other"})
            source = client.post("/v2/price-sources", {"name": "Desk"})["id"]
            client.patch(f"/v2/price-sources/{source}/enable")
            nav = {"pricedAs": "FUND", "priceType": "NAV"}
            pair = client.post(f"/v2/price-sources/{source}/pairs", nav)["id"]
            tenant.prices = f"/v2/price-sources/{source}/pairs/{pair}/prices"
            trade = {"pricedAs": "BTC", "priceType": "Trade", "priceSources": ["src_kraken"]}
            tenant.market = f"/v2/pairs/{client.post('/v2/pairs', trade)['id']}"
        # A window opens in a whole second; its first block is known once one exists at or after that second.
        time.sleep(1)
        self.world.transfer_many(_TRANSFERS, self.tokens, per_block=_TRANSFERS, timestamp=int(time.time()))
        tenant.first_blocks = {address: first_block_at(self.node, instant) for address, instant in opened.items()}
        return tenant

    def _mine(self) -> None:
        """Make a block of now with transfers, every second."""
        for _ in self.load.rounds(_BLOCK_SECONDS):
            self.world.transfer_many(_TRANSFERS, self.tokens, per_block=_TRANSFERS, timestamp=int(time.time()))

    # Recovery

    def mark(self) -> Mark:
        """Return the present moment."""
        return Mark(self.node.head(), time.monotonic(), datetime.now(UTC))

    def wait_for_recovery(self, since: Mark, limit_seconds: float) -> bool:
        """Wait until the service works and shows every row; False if `up` has ended, or at the limit."""
        deadline = time.monotonic() + limit_seconds
        while self.service.is_running and time.monotonic() < deadline:
            self.load.check()
            with suppress(ApiError):
                if not self.troubles(since) and self.lost_rows() == 0:
                    return True
            time.sleep(_POLL_SECONDS)
        return False

    def troubles(self, since: Mark) -> list[str]:
        """Return what does not work yet: processes, health, new blocks and prices, and writes."""
        found = [] if len(self.service.processes()) == _ROLES else ["a process is missing"]
        for tenant in self.tenants:
            with self.client(tenant) as client:
                if client.get("/health/ready")["status"] != "ready":
                    found.append("health")
                shown = [client.get(f"{path}/cap-table", limit=1)["asOf"] for path in tenant.tokens.values()]
                if any((at["blockNumber"] or 0) <= since.block for at in shown):
                    found.append(f"new blocks of {tenant.name}")
                prices = client.get(f"{tenant.market}/prices/history", limit=1)["data"]
                if not prices or datetime.fromisoformat(prices[0]["effectiveFrom"]) <= since.time:
                    found.append(f"new prices of {tenant.name}")
            if self.load.writing.is_set() and tenant.written_at < since.monotonic:
                found.append(f"writes of {tenant.name}")
        return found

    def lost_rows(self) -> int:
        """Count acknowledged writes that are missing, and transfers of the chain that are missing or doubled.

        Raises:
            ApiError: the service does not answer.
        """
        lost = 0
        for tenant in self.tenants:
            with self.client(tenant) as client:
                lost += lost_writes(client, tenant)
                for token in self.tokens:
                    pages = list(client.pages(f"{tenant.tokens[token.address]}/activities", limit=_PAGE))
                    verdict = check_token_activities(self.world, token, tenant.first_blocks[token.address], pages)
                    lost += verdict.total - verdict.agreed
        return lost

    # Faults and procedures

    def start(self) -> None:
        """Start the service; if it ends or is not ready in time, keep its output as the message."""
        self.service.stop()
        self.started_at = time.monotonic()
        try:
            self.service.start(_START_SECONDS)
        except ServiceError as error:
            self.message = str(error)
        else:
            self.message = ""

    def back_up(self) -> None:
        """Make a backup, as every night."""
        self.service.run("backup", str(self.backup))

    def diagnosis(self) -> str:
        """Return the message of the last start, and the findings of `ledgermart doctor`."""
        try:
            found = self.service.run("doctor", "--json")
        except ServiceError as error:
            found = str(error)
        return f"{self.message}\n{found}"

    def follow(self, command: str) -> None:
        """Run a command that a message names, while the service is stopped.

        Raises:
            ServiceError: the command failed.
        """
        arguments = command.split()
        if arguments[0] == "restore":
            arguments = ["restore", "--set-aside", str(self.backup)]
        self.service.stop()
        self.service.run(*arguments)
        self.start()

    def rest_writers(self) -> None:
        """Let no write begin, and wait for those in progress."""
        self.load.writing.clear()
        time.sleep(_REST_SECONDS)
