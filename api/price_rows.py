"""What the named queries about prices and values return, as `api.rows` for the others.

Prices and values are exact text, null where there is none; their status says why.
"""

from datetime import datetime

from api.rows import Row
from api.schemas.prices import Derivation, PriceState, PriceStatus


class LatestPriceRow(Row, frozen=True):
    """`latest_prices`: the newest price of a pair, and whether it is still in force."""

    pair_key: int
    price: str
    effective_from: datetime
    window_start: datetime | None
    source_id: str
    is_fallback: bool
    is_in_force: bool
    max_age_seconds: int | None


class PriceStepRow(Row, frozen=True):
    """`price_steps`: a step of the system price that has a price."""

    valid_from: datetime
    valid_until: datetime | None
    price: str
    source_id: str
    is_fallback: bool
    effective_from: datetime
    window_start: datetime | None
    is_partial: bool
    derivation: Derivation


class SourcePriceRow(Row, frozen=True):
    """`source_prices`: a price as one source of the pair gave it."""

    price_id: str
    effective_from: datetime
    window_start: datetime | None
    price: str
    is_partial: bool
    derivation: Derivation
    fresh_until: datetime | None
    position: int
    state: PriceState
    reason: str | None


class PriceAtRow(Row, frozen=True):
    """`prices_at`: the step of the system price that holds at a moment asked for."""

    pair_key: int
    moment: datetime
    price: str | None
    price_status: PriceStatus
    source_id: str | None
    position: int | None
    is_fallback: bool | None
    effective_from: datetime | None
    window_start: datetime | None
    is_partial: bool | None
    derivation: Derivation | None
    valid_from: datetime
    valid_until: datetime | None
