"""Price discoveries: past prices of a pair, asked for window by window.

The windows of a request are worked out here alone; the pipeline collects them.
"""

from calendar import monthrange
from collections.abc import Iterator, Mapping
from datetime import MAXYEAR, UTC, datetime, timedelta
from decimal import Decimal, localcontext
from enum import StrEnum
from typing import Annotated, Literal, NamedTuple

from msgspec import UNSET, Meta, UnsetType, field
from sqlalchemy.orm import Session

from control import access, operations
from control.access import Principal, Role
from control.changes import record_change
from control.clock import utc_now, whole_second
from control.errors import Invalid
from control.inputs import ExactNumber, Schema, described, positive
from control.instants import pattern_of, read_instant_or_day, write_instant
from control.operations import OperationKind, OperationRow
from control.pricing import pairs, sources
from control.pricing.decimals import positive_decimal
from control.pricing.definitions import PriceSource
from control.pricing.pairs import PairRow
from control.pricing.sources import SourceKind

MOST_WINDOWS = 100_000
MOST_MULTIPLIER = 1_000_000
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


class WindowSize(StrEnum):
    """The sizes of windows; the first four have exact lengths, the others follow the calendar in UTC."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"


WindowSizeName = Literal["minute", "hour", "day", "week", "month", "quarter", "year"]


class PriceDiscoveryRequest(Schema, frozen=True, kw_only=True):
    """Past prices to collect, window by window."""

    from_: Annotated[
        str,
        described(
            "Start of the first window: an instant, or a day (its start), UTC, 1970 or later.",
            ["2026-01-01"],
            pattern=pattern_of(),
        ),
    ] = field(name="from")
    to: Annotated[
        str,
        described(
            "End, after `from`; it takes the same forms. An end in the future is replaced by the present, and `note` "
            "says so. If the last window is longer than the rest of the range, it is shortened and marked as partial.",
            ["2026-02-01"],
            pattern=pattern_of(),
        ),
    ]
    window_size: Annotated[
        WindowSizeName,
        Meta(
            description="Length of a window. Windows of months, quarters and years begin on the day of `from`, or on "
            "the last day of a shorter month."
        ),
    ]
    multiplier: (
        Annotated[
            ExactNumber,
            positive(
                "Number of `windowSize` units in a window, 1 by default. For month, quarter and year it is a whole "
                "number; for the others the window is a whole number of seconds.",
                MOST_MULTIPLIER,
            ),
        ]
        | UnsetType
    ) = UNSET


class Window(NamedTuple):
    """[start, end) of one window, aware UTC; a partial one was cut at the end of the range."""

    start: datetime
    end: datetime
    is_partial: bool


_SECONDS = {WindowSize.MINUTE: 60, WindowSize.HOUR: 3_600, WindowSize.DAY: 86_400, WindowSize.WEEK: 604_800}
_MONTHS = {WindowSize.MONTH: 1, WindowSize.QUARTER: 3, WindowSize.YEAR: 12}


def windows(start: datetime, end: datetime, size: WindowSize, multiplier: Decimal) -> Iterator[Window]:
    """Yield the windows of a range in order: contiguous from `start`, `multiplier` sizes each, the last cut at `end`.

    Windows of months, quarters and years begin on the day and at the time of `start`. In a shorter month they begin on
    its last day, and in the next longer one on the day of `start` again.

    Args:
        start: aware.
        end: aware, later than `start`.
        size: of which windows are multiples.
        multiplier: as `check_multiplier` accepts it.
    """
    length = _length(size, multiplier)
    number, opened = 0, start.astimezone(UTC)
    first, last = opened, end.astimezone(UTC)
    while opened < last:
        number += 1
        closed = _add_months(first, number * length) if size in _MONTHS else _add_seconds(first, number * length)
        if closed is None or closed > last:
            yield Window(opened, last, True)
            return
        yield Window(opened, closed, False)
        opened = closed


def count_windows(start: datetime, end: datetime, size: WindowSize, multiplier: Decimal) -> int:
    """Return how many windows a range has, arguments as `windows`."""
    if size in _MONTHS:
        return sum(1 for _ in windows(start, end, size, multiplier))
    return -((start - end) // timedelta(seconds=_length(size, multiplier)))


def check_multiplier(size: WindowSize, multiplier: Decimal) -> str:
    """Return the canonical text of a multiplier: above 0, at most a million, whole where months are counted.

    Other windows must last whole seconds, so that none begins or ends between two of them.

    Raises:
        Invalid: on 'multiplier'.
    """
    text = positive_decimal("multiplier", multiplier)
    if multiplier > MOST_MULTIPLIER:
        detail = f"multiplier is {text}; use at most {MOST_MULTIPLIER}, or a larger windowSize"
        raise Invalid("multiplier", "out-of-range", detail)
    if size in _MONTHS:
        if multiplier % 1:
            detail = f"multiplier is {text}; a {size} cannot be divided: use a whole number, or windowSize day"
            raise Invalid("multiplier", "fraction-of-calendar", detail)
    elif _lasting(size, multiplier) % 1:
        detail = f"{text} {size}s are not a whole number of seconds; choose another multiplier"
        raise Invalid("multiplier", "not-whole-seconds", detail)
    return text


def request(
    session: Session,
    principal: Principal,
    definitions: Mapping[str, PriceSource],
    pair_id: str,
    asked: PriceDiscoveryRequest,
    now: datetime | None = None,
) -> OperationRow:
    """Ask for past prices of a pair from every enabled source of it that has a history of its price type.

    Args:
        session: a write transaction.
        principal: who asks.
        definitions: the preconfigured sources.
        pair_id: the pair.
        asked: the range and its windows. The part after the present second is cut off, and the operation's note
            says so.
        now: the moment; None is the clock's.

    Raises:
        Denied: below operator.
        NotFound: the tenant has no such pair.
        Invalid: on the property by its JSON name; on 'priceType' when no source has such a history.
    """
    access.require(principal, Role.OPERATOR)
    stored = pairs.lock(session, principal.tenant_id, pair_id, is_shared=True)
    pair = pairs.get(session, principal.tenant_id, pair_id)
    if asked.window_size not in set(WindowSize):
        raise Invalid("windowSize", "unknown-size", f"windowSize must be one of {', '.join(WindowSize)}")
    size = WindowSize(asked.window_size)
    multiplier = Decimal(1) if asked.multiplier is UNSET else asked.multiplier
    text = check_multiplier(size, multiplier)
    moment = now or utc_now()
    first, last, note = _read_range(asked.from_, asked.to, moment)
    number = count_windows(first, last, size, multiplier)
    if number > MOST_WINDOWS:
        detail = f"the range has {number} windows; request at most {MOST_WINDOWS} at once, or longer windows"
        raise Invalid("windowSize", "too-many-windows", detail)
    _require_history(session, definitions, pair)
    parameters = {
        "from": write_instant(first),
        "to": write_instant(last),
        "windowSize": size.value,
        "multiplier": text,
    }
    operation = operations.queue(
        session, principal, OperationKind.PRICE_DISCOVERY, stored.pair_key, parameters, note=note, now=moment
    )
    audited = {"pairId": pair_id, **parameters}
    record_change(session, principal, "price-pair.discover", "operation", operation.id, None, audited, now, is_new=True)
    return operation


def _read_range(start: str, end: str, now: datetime) -> tuple[datetime, datetime, str | None]:
    """Return the bounds, the end cut at now, and the remark that it was."""
    first, last = read_instant_or_day("from", start), read_instant_or_day("to", end)
    if first < EARLIEST:
        raise Invalid("from", "out-of-range", "from is before 1970; the earliest prices are of 1970")
    if last <= first:
        raise Invalid("to", "empty-range", f"the range from {start} to {end} is empty; to must be later")
    present = whole_second(now)
    if last <= present:
        return first, last, None
    if present <= first:
        raise Invalid(
            "from", "out-of-range", f"from is {start}, which is not in the past; there are no prices for it yet"
        )
    return first, present, f"to was {write_instant(last)}; the range was cut at the time of the request"


def _require_history(session: Session, definitions: Mapping[str, PriceSource], pair: PairRow) -> None:
    reasons: list[str] = []
    for source_id in pair.price_sources:
        source = sources.find(session, pair.tenant_id, definitions, source_id)
        if source is None:
            reasons.append(f"{source_id} is no longer defined")
        elif source.kind is SourceKind.MANUAL:
            reasons.append(f"{source.name} is manual, so its only prices are those that were entered")
        elif pair.price_type not in source.history_types:
            has = f"only of {', '.join(source.history_types)}" if source.history_types else "of no price type"
            reasons.append(f"{source.name} has a history {has}")
        elif not source.is_enabled:
            reasons.append(f"{source.name} is disabled")
        else:
            return
    detail = f"no source of the pair has a history of price type {pair.price_type}: {'; '.join(reasons)}"
    raise Invalid("from", "no-history", detail)


def _length(size: WindowSize, multiplier: Decimal) -> int:
    """Return a window's length in seconds, or in months of the calendar."""
    return int(multiplier) * _MONTHS[size] if size in _MONTHS else int(_lasting(size, multiplier))


def _lasting(size: WindowSize, multiplier: Decimal) -> Decimal:
    with localcontext(prec=100):  # more digits than a checked multiplier has: never rounded
        return multiplier * _SECONDS[size]


def _add_seconds(start: datetime, seconds: int) -> datetime | None:
    """Return the instant that is some seconds later; None where calendars end."""
    try:
        return start + timedelta(seconds=seconds)
    except OverflowError:
        return None


def _add_months(start: datetime, months: int) -> datetime | None:
    """Return the instant that is some months later, or the last day of a shorter month; None where calendars end."""
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    if year > MAXYEAR:
        return None
    return start.replace(year=year, month=month + 1, day=min(start.day, monthrange(year, month + 1)[1]))
