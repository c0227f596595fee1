"""The bounds of history requests as tenants write them, and their canonical texts, which are stored.

A request's range is `from` <= t < `to` for instants and days; a block as `to` is itself included. Which blocks that
are, only the pipeline can tell.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from control.errors import Invalid
from control.instants import FORMS, is_day, read_block, read_instant_or_day, write_instant
from control.networks.tables import NativeMode

_FROM_FORMS = f"{FORMS}, block:N or creation"
_TO_FORMS = f"{FORMS}, block:N or now"
# A wallet's history of more blocks is collected without its transactions, unless the request asks for them.
_LONG_HISTORY = 10_000


class BoundKind(StrEnum):
    """Kind of a bound."""

    INSTANT = "Instant"
    BLOCK = "Block"
    CREATION = "Creation"
    NOW = "Now"


@dataclass(frozen=True, slots=True)
class Bound:
    """One bound: `instant` (aware, UTC) is set for instants and days, `block` for blocks; `text` is canonical."""

    text: str
    kind: BoundKind
    instant: datetime | None = None
    block: int | None = None


_WORDS = {"creation": BoundKind.CREATION, "now": BoundKind.NOW}


def parse_bound(text: str, field: str = "from", forms: str = f"{_FROM_FORMS} or now") -> Bound:
    """Read a bound: an instant (RFC 3339), a day (its start), `block:N`, `creation` or `now`.

    Raises:
        Invalid: on the field, which is for the error alone.
    """
    if text in _WORDS:
        return Bound(text, _WORDS[text])
    block = read_block(field, text)
    if block is not None:
        return Bound(f"block:{block}", BoundKind.BLOCK, block=block)
    instant = read_instant_or_day(field, text, forms)
    canonical = text if is_day(text) else write_instant(instant)
    return Bound(canonical, BoundKind.INSTANT, instant=instant)


def native_mode(asked: str | None, blocks: int, defined: NativeMode) -> NativeMode:
    """How a wallet's native value is collected: as asked, else as its network is, a long range by balance only."""
    if asked is not None:
        return NativeMode(asked)
    return NativeMode.BALANCE_ONLY if blocks > _LONG_HISTORY else defined


def parse_range(start: str, end: str, fields: tuple[str, str] = ("from", "to")) -> tuple[Bound, Bound]:
    """Read start and end of a request's range.

    Args:
        start: the first bound.
        end: the last one.
        fields: their names in the request.

    Raises:
        Invalid: on one of the fields: malformed, `now` as start or `creation` as end, or nothing lies between them.
    """
    start_field, end_field = fields
    first, last = parse_bound(start, start_field, _FROM_FORMS), parse_bound(end, end_field, _TO_FORMS)
    if first.kind is BoundKind.NOW:
        raise Invalid(start_field, "unsupported-bound", f"{start_field} cannot be now; write {_FROM_FORMS}")
    if last.kind is BoundKind.CREATION:
        raise Invalid(end_field, "unsupported-bound", f"{end_field} cannot be creation; write {_TO_FORMS}")
    is_empty = first.instant is not None and last.instant is not None and last.instant <= first.instant
    if first.block is not None and last.block is not None:
        is_empty = last.block < first.block
    if is_empty:
        fix = f"{start_field} must be earlier" if start_field == end_field else f"{end_field} must be later"
        raise Invalid(end_field, "empty-range", f"the range from {first.text} to {last.text} is empty; {fix}")
    return first, last


def is_no_later(known: Bound, asked: Bound) -> bool:
    """Compare two starts of a range: True if the first is no later; False also if only the chain could decide."""
    if known.kind is BoundKind.CREATION or known.text == asked.text:
        return True
    if known.instant is not None and asked.instant is not None:
        return known.instant <= asked.instant
    return known.block is not None and asked.block is not None and known.block <= asked.block
