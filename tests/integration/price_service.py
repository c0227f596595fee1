"""A service with price sources: exchanges on loopback, feeds on a node; its cycles run in this process, without dbt.

python -m tests.integration.price_service FOLDER DEFINITIONS STATEMENTS

Publication by a cycle is assumed: `PriceService.publish` records it, so that discoveries can end.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from control import operations
from control.access import Principal
from control.networks.definitions import load_networks
from control.operations import OperationRow
from control.pricing import discovery, items, pairs
from control.pricing.definitions import PriceSource, price_sources_in_force
from control.pricing.discovery import PriceDiscoveryRequest
from control.pricing.items import PricedItemCreate
from control.pricing.pairs import PairCreate, PairRow
from control.pricing.price_types import PriceType
from control.snapshot import read_snapshot
from pipelines.deliver.operations import cancelled_discoveries, report_discoveries
from pipelines.prices.asking import opener
from pipelines.prices.discovery import DiscoveryReport, collect_discoveries
from pipelines.prices.polling import PriceReport, collect_prices
from pipelines.raw.builds import finish_batch, record_publication, record_transform
from pipelines.raw.database import open_warehouse
from pipelines.tenants.configuration import open_batch, replace_control
from pipelines.tenants.price_configuration import read_manual_prices_to_copy
from tests.chain.feeds import ScriptedFeed
from tests.integration.harness import LocalNetwork, Service
from tests.integration.killing import ending_after, kill_this_process


class PriceService(Service):
    """A service with the price sources of a file and the feeds of its network.

    Args:
        folder: an empty folder.
        definitions: the file of price sources.
        network: the network to which the feeds are added.
        feeds: the feeds.
        settings: further LEDGERMART_* variables.
    """

    def __init__(
        self,
        folder: Path,
        definitions: Path,
        network: LocalNetwork | None = None,
        feeds: Sequence[ScriptedFeed] = (),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        network = network or LocalNetwork("local", None)
        own = {"LEDGERMART_PRICE_SOURCES": str(definitions), "LEDGERMART_PRICE_POLL_SECONDS": "1"}
        super().__init__(folder, [network], {**own, **(settings or {})})
        if feeds:
            with self.settings.networks_file.open("a") as file:
                file.write("".join(feed.definition() for feed in feeds))
            self.networks = load_networks(self.settings.networks_file, self.variables)

    @property
    def sources(self) -> dict[str, PriceSource]:
        """The definitions in force, by id."""
        return price_sources_in_force(self.settings)

    # Tenants' actions

    def pair(
        self,
        principal: Principal,
        name: str,
        sources: Sequence[str],
        price_type: str = "Trade",
        **rules: Any,
    ) -> PairRow:
        """Configure a pair, such as `BTC/USD`, and any missing items."""
        priced_as, priced_in = name.split("/")
        with self.store.write() as session:
            for symbol in (priced_as, priced_in, *filter(None, [rules.get("bridge")])):
                if items.find(session, principal.tenant_id, symbol) is None:
                    items.create(session, principal, PricedItemCreate(symbol=symbol, name=symbol, class_="Other"))
            return pairs.create(
                session,
                principal,
                self.sources,
                lambda _: {},
                PairCreate(
                    priced_as=priced_as,
                    priced_in=priced_in,
                    price_type=PriceType(price_type),
                    price_sources=list(sources),
                    **rules,
                ),
            )

    def discover(
        self, principal: Principal, pair: PairRow, start: str, end: str, size: str = "hour", multiplier: str = "1"
    ) -> OperationRow:
        """Ask for past prices."""
        with self.store.write() as session:
            return discovery.request(
                session,
                principal,
                self.sources,
                pair.id,
                PriceDiscoveryRequest(from_=start, to=end, window_size=size, multiplier=Decimal(multiplier)),
            )

    # The pipeline

    def price_cycle(self) -> PriceReport:
        """Run a cycle's control snapshot, market lists, routes and polls."""
        with open_warehouse(self.settings.warehouse_path) as connection:
            with self.store.read() as session:
                snapshot = read_snapshot(session, self.settings.shard)
                manual = read_manual_prices_to_copy(connection, session, snapshot, self.settings.shard)
            self._batches += 1
            batch = open_batch(connection, f"test run {self._batches}")
            replace_control(connection, snapshot, self.networks, batch, self.sources, manual)
            report = collect_prices(
                connection,
                self.sources,
                opener(lambda: self.networks),
                self.settings.price_poll_seconds,
                batch,
            )
            finish_batch(connection, batch)
        for defect in report.defects:
            raise defect
        return report

    def pass_time(self) -> None:
        """Move all times at which sources are due back by more than their interval of a second."""
        with open_warehouse(self.settings.warehouse_path) as connection:
            for table, times in {
                "market_lists": ["due_at"],
                "price_polls": ["due_at"],
                "price_turns": ["turn_at", "next_at"],
            }.items():
                moved = ", ".join(f"{time} = {time} - interval 1100 milliseconds" for time in times)
                connection.execute(f"update raw.{table} set {moved}")

    def publish(self) -> None:
        """Record the stored rows as transformed and published."""
        with open_warehouse(self.settings.warehouse_path) as connection:
            ((batch,),) = connection.execute("select max(batch_id) from raw.batches").fetchall()
            record_transform(connection, batch, "test")
            record_publication(connection, batch, batch)
            report_discoveries(connection, self.store, self.settings.shard)

    def price_slot(self, is_over: Callable[[], bool] = lambda: False) -> DiscoveryReport:
        """Run discoveries, as at the end of a cycle."""
        with open_warehouse(self.settings.warehouse_path) as connection:
            self._batches += 1
            batch = open_batch(connection, f"test run {self._batches}")
            report = collect_discoveries(
                connection,
                self.sources,
                opener(lambda: self.networks),
                batch,
                is_over,
                lambda: cancelled_discoveries(self.store, self.settings.shard),
                lambda: report_discoveries(connection, self.store, self.settings.shard),
            )
            finish_batch(connection, batch)
            report_discoveries(connection, self.store, self.settings.shard)
        for defect in report.defects.values():
            raise defect
        return report

    def discovery(self, operation: OperationRow) -> OperationRow:
        """Return the current state of a discovery."""
        with self.store.read() as session:
            return operations.get(session, operation.tenant_id, operation.id, operation.kind, operation.pair_key)

    def windows(self, pair: PairRow) -> list[tuple[str, str, datetime, datetime, Decimal, bool]]:
        """Return the windows that a pair sees: source, market, start, end, price and `is_partial`."""
        rows = self.query(
            """
            select source_id, market_id, seen.window_start, effective_from, price, is_partial
            from raw.pair_windows as seen
            inner join raw.prices using (source_id, market_id, price_type, window_start, effective_from)
            inner join raw.control_price_pairs as pairs on seen.pair_key = pairs.pair_key
            where pairs.pair_id = ?
            order by all
            """,
            [pair.id],
        )
        assert len(set(rows)) == len(rows)
        return [tuple(row) for row in rows]  # type: ignore[misc]


def main(folder: str, definitions: str, statements: str) -> None:
    """Run discoveries in a separate process, killed after a number of statements."""
    service = PriceService(Path(folder), Path(definitions))
    # Started by -m, this module is the main one.
    with ending_after(int(statements), kill_this_process, "__main__"):
        service.price_slot()


if __name__ == "__main__":
    main(*sys.argv[1:])
