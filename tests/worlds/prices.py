"""Made-up pairs and the pipeline's raw rows about their prices, cycle by cycle: for tests of the transformation.

Times are whole hours, so that prices of different sources take effect and become stale at the same instants. Rows
follow the pipeline's rules: each change that a pair sees has a mark in raw.price_changes. The module does not depend on
how the marts are computed.
"""

import random
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from tests.worlds.ledger import GENESIS_TIME as START
from tests.worlds.ledger import replace_raw

SMALLEST = Decimal("0.000000000000000001")
LARGEST = Decimal("99999999999999999999.999999999999999999")
Identity = tuple[str, str, str, datetime | None, datetime]


def at(hours: float) -> datetime:
    """Return an instant of the made-up time."""
    return START + timedelta(hours=hours)


class Leg(NamedTuple):
    """A market of a route, used with its price or with 1 / price."""

    market: str
    price_type: str
    is_inverted: bool


class Route(NamedTuple):
    """A source's route for a pair: one leg, two legs, or a manual source's supported pair."""

    source: str
    legs: tuple[Leg, ...] = ()
    supported_pair: int | None = None

    @property
    def derivation(self) -> str:
        """Its name in the answers."""
        if self.supported_pair is not None:
            return "Manual"
        if len(self.legs) == 2:
            return "Bridge"
        return "Inverse" if self.legs[0].is_inverted else "Direct"


class Pair(NamedTuple):
    """A price pair with the routes of its sources in order."""

    key: int
    routes: tuple[Route, ...]
    max_age: int | None = 4 * 3600
    max_jump: Decimal | None = None
    max_deviation: Decimal | None = None
    created_at: datetime = START

    @property
    def id(self) -> str:
        """The public id."""
        return f"pair_{self.key}"

    @property
    def tenant(self) -> str:
        """Its tenant."""
        return f"ten_{self.key % 2}"


class Price(NamedTuple):
    """A row of raw.prices without its identity."""

    price: Decimal
    origin: str
    is_partial: bool
    first_collected_at: datetime
    last_collected_at: datetime


class ManualPrice(NamedTuple):
    """A row of raw.control_manual_prices without its keys."""

    supported_pair: int
    price: Decimal
    effective_from: datetime
    revision: int


class PriceWorld:
    """The configuration, and the sources' prices so far."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = START
        self.batch = 0
        self.transformed: int | None = None
        self.pairs: dict[int, Pair] = {}
        self.prices: dict[Identity, Price] = {}
        self.windows: set[tuple[int, Identity]] = set()
        self.manual: list[ManualPrice] = []
        self.reviews: dict[tuple[int, str], str] = {}
        self.changes: list[tuple[int, int, datetime | None]] = []

    # Tenants' configuration

    def configure(self, pair: Pair) -> None:
        """Create or change a pair."""
        self.pairs[pair.key] = pair
        self.mark(pair.key, None)

    def remove(self, key: int) -> None:
        """Remove a pair; its windows stay behind."""
        del self.pairs[key]
        self.mark(key, None)

    def review(self, key: int, price_id: str, effective_from: datetime, decision: str) -> None:
        """Decide on a quarantined price."""
        self.reviews[key, price_id] = decision
        self.mark(key, effective_from)

    def enter(self, supported_pair: int, price: Decimal, effective_from: datetime) -> None:
        """Enter a manual price, or a revision of it."""
        revision = 1 + sum(
            1 for row in self.manual if (row.supported_pair, row.effective_from) == (supported_pair, effective_from)
        )
        self.manual.append(ManualPrice(supported_pair, price, effective_from, revision))
        for pair in self.pairs.values():
            if any(route.supported_pair == supported_pair for route in pair.routes):
                self.mark(pair.key, effective_from)

    def mark(self, key: int, from_time: datetime | None) -> None:
        """Mark a pair's prices as changed from a time on."""
        self.changes.append((self.batch, key, from_time))

    # Prices of sources

    def poll(self, source: str, leg: Leg, price: Decimal, effective_from: datetime) -> None:
        """Store a polled price: a new, corrected or repeated one."""
        identity = (source, leg.market, leg.price_type, None, effective_from)
        known = self.prices.get(identity)
        first = known.first_collected_at if known else self.now
        self.prices[identity] = Price(price, "Poll", False, first, self.now)
        for pair in self._readers(source, leg):
            self.mark(pair.key, effective_from)

    def discover(self, key: int, source: str, leg: Leg, price: Decimal, start: datetime, end: datetime) -> None:
        """Store the price of a window that a pair requested."""
        identity = (source, leg.market, leg.price_type, start, end)
        known = self.prices.get(identity)
        first = known.first_collected_at if known else self.now
        self.prices[identity] = Price(price, "Window", self.random.random() < 0.2, first, self.now)
        self.windows.add((key, identity))
        # The corrected price also shows in other pairs' windows.
        for reader, seen in self.windows:
            if seen == identity:
                self.mark(reader, end)

    def _readers(self, source: str, leg: Leg) -> Iterable[Pair]:
        return [
            pair
            for pair in self.pairs.values()
            for route in pair.routes
            if route.source == source
            and any((mine.market, mine.price_type) == (leg.market, leg.price_type) for mine in route.legs)
        ]

    # Chance

    def happen(self, count: int, price: Callable[[], Decimal], hours: tuple[int, int]) -> None:
        """Store random prices of random legs within `hours`."""
        routes = [(pair, route) for pair in self.pairs.values() for route in pair.routes]
        for _ in range(count):
            pair, route = self.random.choice(routes)
            moment = at(self.random.randint(*hours))
            if route.supported_pair is not None:
                self.enter(route.supported_pair, price(), moment)
                continue
            leg = self.random.choice(route.legs)
            if self.random.random() < 0.6:
                self.poll(route.source, leg, price(), moment)
            else:
                length = self.random.choice([1, 2, 6])
                self.discover(pair.key, route.source, leg, price(), moment - timedelta(hours=length), moment)

    def begin(self) -> None:
        """Begin the next cycle."""
        self.batch += 1
        self.now += timedelta(hours=1)

    def write(self, warehouse: Path) -> None:
        """Write the pipeline's raw rows, without the marks of transformed batches."""
        legs = [(pair, place, route) for pair in self.pairs.values() for place, route in enumerate(pair.routes)]
        done = -1 if self.transformed is None else self.transformed
        rows = {
            "transforms": [
                {
                    "batch_id": done,
                    "control_revision": 1,
                    "project_fingerprint": "x",
                    "finished_at": self.now,
                }
            ]
            if self.transformed is not None
            else [],
            "control_price_pairs": [
                {
                    "pair_key": pair.key,
                    "pair_id": pair.id,
                    "tenant_id": pair.tenant,
                    "priced_as": "A",
                    "priced_in": "USD",
                    "price_type": "Trade",
                    "max_age_seconds": pair.max_age,
                    "allow_inverse": True,
                    "bridge": None,
                    "max_jump": None if pair.max_jump is None else f"{pair.max_jump:f}",
                    "max_deviation": None if pair.max_deviation is None else f"{pair.max_deviation:f}",
                    "created_at": pair.created_at,
                }
                for pair in self.pairs.values()
            ],
            "pair_routes": [
                {
                    "pair_key": pair.key,
                    "source_id": route.source,
                    "position": place,
                    "status": "Resolved",
                    "derivation": route.derivation,
                    "detail": None,
                    "leg_number": number,
                    "market_id": leg and leg.market,
                    "price_type": leg and leg.price_type,
                    "is_inverted": bool(leg and leg.is_inverted),
                    "supported_pair_key": route.supported_pair,
                }
                for pair, place, route in legs
                for number, leg in enumerate(route.legs or (None,), start=1)
            ],
            "prices": [
                {
                    "source_id": source,
                    "market_id": market,
                    "price_type": price_type,
                    "window_start": start,
                    "effective_from": end,
                    "price": f"{said.price:f}",
                    "origin": said.origin,
                    "is_partial": said.is_partial,
                    "first_collected_at": said.first_collected_at,
                    "last_collected_at": said.last_collected_at,
                    "batch_id": self.batch,
                }
                for (source, market, price_type, start, end), said in self.prices.items()
            ],
            "pair_windows": [
                {
                    "pair_key": key,
                    "source_id": source,
                    "market_id": market,
                    "price_type": price_type,
                    "window_start": start,
                    "effective_from": end,
                }
                for key, (source, market, price_type, start, end) in self.windows
            ],
            "control_manual_prices": [
                {
                    "manual_price_key": key,
                    "price_id": f"price_{key}",
                    "supported_pair_key": row.supported_pair,
                    "price": f"{row.price:f}",
                    "effective_from": row.effective_from,
                    "revision": row.revision,
                    "note": None,
                    "created_at": START,
                }
                for key, row in enumerate(self.manual)
            ],
            "control_price_reviews": [
                {"pair_key": key, "price_id": price_id, "decision": decision}
                for (key, price_id), decision in self.reviews.items()
            ],
            "price_changes": [
                {"batch_id": batch, "pair_key": key, "from_time": from_time}
                for batch, key, from_time in self.changes
                if batch > done
            ],
        }
        replace_raw(warehouse, rows)
