"""Shared by tests of the raw price tables: an in-memory warehouse and a configuration of pairs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace

import duckdb

from control.pricing.definitions import PriceSource
from control.snapshot import ControlSnapshot
from pipelines.raw.database import create_tables
from pipelines.tenants.configuration import replace_control
from tests.snapshots import record, snapshot_of
from tests.unit.control.pricing import Listed

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
TENANTS = (record("control_tenants", "ten_a", "acme"), record("control_tenants", "ten_b", "bolt"))


def source(name: str, granularities: tuple[str, ...] = ("1m", "1h", "1d"), poll_seconds: int = 1) -> PriceSource:
    """Return a definition of an exchange."""
    return PriceSource(
        id=f"src_{name}",
        name=name.title(),
        adapter="ccxt",
        exchange=name,
        network=None,
        price_types=("Ask", "Bid", "Trade"),
        history_types=("Trade",) if granularities else (),
        granularities=granularities,
        requests_per_second=1,
        timeout_seconds=1,
        max_attempts=1,
        poll_seconds=poll_seconds,
        page_candles=None,
        history_candles=None,
    )


SOURCES = {definition.id: definition for definition in (source("kraken"), source("gemini"))}


def pair(
    key: int,
    priced_as: str = "BTC",
    priced_in: str = "USD",
    *,
    tenant_id: str = "ten_a",
    price_type: str = "Trade",
    allow_inverse: bool = False,
    bridge: str | None = None,
    max_age_seconds: int | None = 86_400,
    max_jump: str | None = None,
    created_at: datetime = NOON,
) -> SimpleNamespace:
    """A pair as the snapshot has it."""
    return record(
        "control_price_pairs",
        pair_key=key,
        pair_id=f"pair_{key}",
        tenant_id=tenant_id,
        priced_as=priced_as,
        priced_in=priced_in,
        price_type=price_type,
        max_age_seconds=max_age_seconds,
        allow_inverse=allow_inverse,
        bridge=bridge,
        max_jump=max_jump,
        created_at=created_at,
    )


def pricing(
    *pairs: SimpleNamespace,
    sources: Sequence[str] = ("src_kraken",),
    switches: Sequence[SimpleNamespace] = (),
    discoveries: Sequence[SimpleNamespace] = (),
) -> ControlSnapshot:
    """A set-up in which every pair asks the same sources; `src_nav` is the manual source of tenant ten_a."""
    symbols = ("BTC", "ETH", "EUR", "USD", "FUND")
    owned = ((tenant, symbol) for tenant in ("ten_a", "ten_b") for symbol in symbols)
    set_up = snapshot_of(
        tenants=TENANTS,
        priced_items=(
            record("control_priced_items", number, tenant, symbol, symbol, "Other")
            for number, (tenant, symbol) in enumerate(owned, start=1)
        ),
        price_pairs=pairs,
        pair_sources=(
            record("control_pair_sources", each.pair_key, position, source_id)
            for each in pairs
            for position, source_id in enumerate(sources)
        ),
        supported_pairs=(record("control_supported_pairs", 7, "spair_7", "src_nav", "ten_a", "FUND", "USD", "NAV"),),
        price_discoveries=discoveries,
    )
    manual = SimpleNamespace(id="src_nav", tenant_id="ten_a", name="NAV")
    return replace(set_up, manual_sources=(manual,), source_switches=tuple(switches))


def switched_off(tenant_id: str, source_id: str) -> SimpleNamespace:
    """A source that a tenant disabled."""
    return SimpleNamespace(tenant_id=tenant_id, source_id=source_id, is_enabled=False)


def manual_price(key: int, price: str, effective_from: datetime, revision: int = 1) -> SimpleNamespace:
    """A price of FUND/USD."""
    return record("control_manual_prices", key, f"price_{key}", 7, price, effective_from, revision, None, NOON)


def discovery(
    key: int, pair_key: int, start: str, end: str, size: str = "hour", multiplier: str = "1", *, cancelled: bool = False
) -> SimpleNamespace:
    """A discovery that waits."""
    values = (key, pair_key, start, end, size, multiplier, "Pending", cancelled, NOON)
    return record("control_price_discoveries", *values)


@dataclass
class Raw:
    """An in-memory warehouse with successive cycles."""

    connection: duckdb.DuckDBPyConnection
    batch: int = 0
    known_manual_prices: int = 0
    _sources: dict[str, PriceSource] = field(default_factory=lambda: dict(SOURCES))

    def snapshot(self, set_up: ControlSnapshot, manual_prices: Sequence[SimpleNamespace] = ()) -> int:
        """Begin a cycle with this set-up; return its batch."""
        self.batch += 1
        replace_control(self.connection, set_up, {}, self.batch, self._sources, manual_prices)
        return self.batch

    def changes(self) -> dict[int, datetime | None]:
        """Return the time from which this batch marked each pair; None means everything."""
        rows = self.query(
            """
            select pair_key, if(bool_or(from_time is null), null, min(from_time))
            from raw.price_changes
            where batch_id = ?
            group by pair_key
            """,
            self.batch,
        )
        return {key: None if moment is None else moment.replace(tzinfo=UTC) for key, moment in rows}  # type: ignore

    def query(self, text: str, *parameters: object) -> list[tuple[object, ...]]:
        """Return the rows of a query."""
        return self.connection.execute(text, list(parameters)).fetchall()


@contextmanager
def raw_warehouse() -> Iterator[Raw]:
    """Yield empty raw tables in memory."""
    connection = duckdb.connect()
    try:
        connection.execute("set timezone = 'UTC'")
        create_tables(connection)
        yield Raw(connection)
    finally:
        connection.close()


def listed(base: str, quote: str, *, is_active: bool = True) -> Listed:
    """Return the market of two codes, which the source writes in lower case."""
    return Listed(f"{base}{quote}", base, quote, base.lower(), quote.lower(), is_active)


@dataclass(frozen=True)
class Polled:
    """A price of a poll."""

    market_id: str
    price_type: str
    effective_from: datetime
    price: Decimal


def polled(price: str, at: timedelta = timedelta(), market_id: str = "BTCUSD", price_type: str = "Trade") -> Polled:
    """Return a price at noon or later."""
    return Polled(market_id, price_type, NOON + at, Decimal(price))
