"""The made-up network of the transformation tests with blocks six hours apart, and prices that tenants enter by hand.

Every fourth block is at midnight. All prices come from manual sources, so one list has all of them.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from pipelines.raw.database import open_warehouse
from tests.worlds.ledger import GENESIS_TIME, World, replace_raw

BLOCK_TIME = timedelta(hours=6)


class Pair(NamedTuple):
    """A price pair; its sources are named in priority order, each with one supported pair of that pair's own."""

    key: int
    tenant: str
    priced_as: str
    priced_in: str
    price_type: str
    max_age: timedelta | None
    sources: tuple[str, ...]

    @property
    def id(self) -> str:
        """The public id."""
        return f"pair_{self.key}"

    def supported_pair(self, source: str) -> int:
        """The key of the supported pair that the source prices this pair by."""
        return self.key * 100 + int(source.rsplit("_", 1)[1])


class Price(NamedTuple):
    """A manual price; keys are in order of entry."""

    key: int
    supported_pair: int
    effective_from: datetime
    price: Decimal


def time_of(block: int) -> datetime:
    """When a block was made, naive UTC."""
    return GENESIS_TIME + block * BLOCK_TIME


class ValueWorld(World):
    """The network and what tenants made of its prices."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.pairs: dict[int, Pair] = {}
        self.prices: list[Price] = []
        # Pairs of tokens, by subject key.
        self.links: dict[int, int] = {}
        self.price_changes: list[tuple[int, int, datetime | None]] = []

    def put_pair(self, pair: Pair) -> None:
        """Create a pair, or change its sources or its greatest age."""
        self.pairs[pair.key] = pair
        self.price_changes.append((self.batch, pair.key, None))

    def remove_pair(self, key: int) -> None:
        """Remove a pair without links; without a mark."""
        assert key not in self.links.values()
        del self.pairs[key]

    def enter_price(self, pair: int, source: str, effective_from: datetime, price: str) -> None:
        """Enter a price, or another one for the same instant."""
        supported_pair = self.pairs[pair].supported_pair(source)
        self.prices.append(Price(len(self.prices) + 1, supported_pair, effective_from, Decimal(price)))
        self.price_changes.append((self.batch, pair, effective_from))

    def write(self, warehouse: Path) -> None:
        """Write everything as the raw schema holds it after the cycle."""
        super().write(warehouse)
        with open_warehouse(warehouse) as connection:
            seconds = int(BLOCK_TIME.total_seconds())
            connection.execute(
                f"update raw.blocks set block_time = ? + to_seconds(block_number * {seconds})", [GENESIS_TIME]
            )
            for subject, pair in self.links.items():
                connection.execute(
                    "update raw.control_subjects set pair_key = ? where subject_key = ?", [pair, subject]
                )
        replace_raw(warehouse, self._pricing())

    def _pricing(self) -> dict[str, list[dict[str, Any]]]:
        pairs = [(pair, place, source) for pair in self.pairs.values() for place, source in enumerate(pair.sources)]
        known = {pair.supported_pair(source) for pair, _, source in pairs}
        return {
            "control_price_pairs": [
                {
                    "pair_key": pair.key,
                    "pair_id": pair.id,
                    "tenant_id": pair.tenant,
                    "priced_as": pair.priced_as,
                    "priced_in": pair.priced_in,
                    "price_type": pair.price_type,
                    "max_age_seconds": None if pair.max_age is None else int(pair.max_age.total_seconds()),
                    "allow_inverse": False,
                    "created_at": GENESIS_TIME,
                }
                for pair in self.pairs.values()
            ],
            "control_price_sources": [
                {"tenant_id": tenant, "source_id": source, "name": source, "kind": "Manual", "is_enabled": True}
                for tenant, source in sorted({(pair.tenant, source) for pair, _, source in pairs})
            ],
            "control_pair_sources": [
                {"pair_key": pair.key, "position": place, "source_id": source} for pair, place, source in pairs
            ],
            "control_supported_pairs": [
                {
                    "supported_pair_key": pair.supported_pair(source),
                    "supported_pair_id": f"spair_{pair.supported_pair(source)}",
                    "source_id": source,
                    "tenant_id": pair.tenant,
                    "priced_as": pair.priced_as,
                    "priced_in": pair.priced_in,
                    "price_type": pair.price_type,
                }
                for pair, _, source in pairs
            ],
            "control_manual_prices": [
                {
                    "manual_price_key": row.key,
                    "price_id": f"price_{row.key}",
                    "supported_pair_key": row.supported_pair,
                    "price": row.price,
                    "effective_from": row.effective_from,
                    "revision": 1 + _count(self.prices, row),
                    "created_at": GENESIS_TIME,
                }
                for row in self.prices
                if row.supported_pair in known
            ],
            "pair_routes": [
                {
                    "pair_key": pair.key,
                    "source_id": source,
                    "position": place,
                    "status": "Resolved",
                    "derivation": "Manual",
                    "leg_number": 1,
                    "is_inverted": False,
                    "supported_pair_key": pair.supported_pair(source),
                }
                for pair, place, source in pairs
            ],
            "price_changes": [
                {"batch_id": batch, "pair_key": key, "from_time": since} for batch, key, since in self.price_changes
            ],
        }


def _count(prices: Iterable[Price], row: Price) -> int:
    """How many were entered before for the same instant."""
    return sum((one.supported_pair, one.effective_from) == row[1:3] and one.key < row.key for one in prices)
