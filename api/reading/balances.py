"""Balances of a wallet: positions at a moment, and their history by intervals of time."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from itertools import groupby

from api.errors import invalid_parameter
from api.parameters import TimeRange
from api.reading.activities import to_reference
from api.reading.moments import State, View, covered_range_at
from api.reading.values import value_status
from api.rows import BalanceChangeRow, PositionRow, as_naive, as_utc
from api.schemas.wallets import BalanceHistoryRow, BalancePoint, BalanceSeries, Interval, Position
from api.serving import Snapshot
from control.networks.families import codec_for

_MOST_BUCKETS = 10_000
_DEFAULT_DAYS = 30
_EARLIEST = datetime.min.replace(tzinfo=UTC)
_UNITS: dict[Interval, str] = {"1h": "hour", "1d": "day", "1w": "week", "1M": "month"}


@dataclass(frozen=True, slots=True)
class Bucket:
    """One interval, `start` <= t < `end`; `first_block` begins the covered range its end is in, None outside of any."""

    start: datetime
    end: datetime
    is_over: bool
    first_block: int | None


def positions(snapshot: Snapshot, view: View, state: State | None) -> list[Position]:
    """Return what a wallet holds at a moment, zero quantities left out, by address of the asset."""
    if state is None:
        return []
    keys = {"subject_key": view.subject.subject_key, "tenant_id": view.subject.tenant_id}
    if state.is_current:
        rows = snapshot.rows("wallet_balances", PositionRow, **keys)
    else:
        rows = snapshot.rows(
            "wallet_balances_as_of",
            PositionRow,
            **keys,
            first_block=state.first_block,
            block_number=state.block_number,
        )
    present = codec_for(view.subject.family).present
    return [
        Position(
            token=to_reference(present, row.token_address, row.token_symbol, row.token_id),
            quantity=row.quantity or row.quantity_raw,
            quantity_raw=row.quantity_raw,
            value=None,
            value_status=value_status(row.quantity),
            reconciliation=row.reconciliation,
        )
        for row in rows
    ]


def history(
    snapshot: Snapshot, view: View, state: State | None, asked: TimeRange, interval: Interval
) -> list[BalanceSeries]:
    """Return the quantities at the end of each interval, per asset that was ever not zero in them.

    Args:
        snapshot: the version.
        view: the wallet.
        state: the moment up to which balances are told.
        asked: the range; a bound left open is 30 days before the end, or the moment of the answer.
        interval: length of the intervals; they begin on whole UTC hours, days, Mondays or months.

    Raises:
        ApiError: 422, the range has more than 10,000 intervals.
    """
    if state is None or state.block_time is None:
        return []
    buckets = _buckets(view, state.block_time, _bounded(view, asked, state.block_time), interval)
    if not buckets:
        return []
    rows = snapshot.rows(
        "wallet_balance_changes",
        BalanceChangeRow,
        subject_key=view.subject.subject_key,
        tenant_id=view.subject.tenant_id,
        unit=_UNITS[interval],
        from_time=as_naive(buckets[0].start),
        to_time=as_naive(buckets[-1].end),
        last_block=state.block_number,
    )
    present = codec_for(view.subject.family).present
    series: list[BalanceSeries] = []
    for _, group in groupby(rows, key=lambda row: row.token_address):
        changes = list(group)
        points = list(_points(buckets, changes, interval))
        if any(point.quantity_raw not in (None, "0") for point in points):
            last = changes[-1]
            token = to_reference(present, last.token_address, last.token_symbol, last.token_id)
            series.append(BalanceSeries(token=token, points=points))
    return series


def _points(
    buckets: Sequence[Bucket], changes: Sequence[BalanceChangeRow], interval: Interval
) -> Iterator[BalancePoint]:
    """Carry the last change forward, but never across a gap: a range's balances are read anew when it begins."""
    starts = [_EARLIEST if change.bucket is None else as_utc(change.bucket) for change in changes]
    for bucket in buckets:
        position = bisect_left(starts, bucket.end) - 1
        known = changes[position] if position >= 0 else None
        if known is not None and (bucket.first_block is None or known.block_number < bucket.first_block - 1):
            known = None
        yield BalancePoint(
            date=f"{bucket.start:%Y-%m-%dT%H:%M:%SZ}" if interval == "1h" else f"{bucket.start:%Y-%m-%d}",
            quantity=(known.balance or known.balance_raw) if known else None,
            quantity_raw=known.balance_raw if known else None,
            quantity_status="Known" if known else "NotCovered",
            is_complete=bucket.is_over and bucket.first_block is not None,
        )


def _bounded(view: View, asked: TimeRange, newest: datetime) -> tuple[datetime, datetime]:
    end = asked.end or newest + timedelta(microseconds=1)
    if asked.start is not None:
        return asked.start, end
    last_day = datetime.combine((end - timedelta(microseconds=1)).date(), time(), UTC)
    start = last_day - timedelta(days=_DEFAULT_DAYS - 1)
    first = next((as_utc(row.from_time) for row in view.ranges if row.is_covered and row.from_time), None)
    return (max(start, first) if first is not None and first < end else start), end


def _buckets(view: View, newest: datetime, bounds: tuple[datetime, datetime], interval: Interval) -> list[Bucket]:
    start, end = bounds
    buckets: list[Bucket] = []
    begin = _floor(start, interval)
    while begin < end and begin <= newest:
        if len(buckets) == _MOST_BUCKETS:
            raise invalid_parameter(
                "interval",
                "too-many-intervals",
                f"the range has more than {_MOST_BUCKETS} intervals of {interval}; "
                "ask for a shorter range or a longer interval",
            )
        finish = _next(begin, interval)
        is_over = finish <= newest
        covered = covered_range_at(view, finish if is_over else newest + timedelta(microseconds=1))
        buckets.append(Bucket(begin, finish, is_over, covered.from_block if covered else None))
        begin = finish
    return buckets


def _floor(instant: datetime, interval: Interval) -> datetime:
    if interval == "1h":
        return instant.replace(minute=0, second=0, microsecond=0)
    day = instant.replace(hour=0, minute=0, second=0, microsecond=0)
    if interval == "1w":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if interval == "1M" else day


def _next(begin: datetime, interval: Interval) -> datetime:
    match interval:
        case "1h":
            return begin + timedelta(hours=1)
        case "1d":
            return begin + timedelta(days=1)
        case "1w":
            return begin + timedelta(days=7)
        case "1M":
            return (begin.replace(day=28) + timedelta(days=4)).replace(day=1)


def to_rows(series: Sequence[BalanceSeries]) -> list[BalanceHistoryRow]:
    """Return a history as rows of one point each, for tabular answers."""
    return [
        BalanceHistoryRow(
            token=one.token,
            date=point.date,
            quantity=point.quantity,
            quantity_raw=point.quantity_raw,
            quantity_status=point.quantity_status,
            is_complete=point.is_complete,
        )
        for one in series
        for point in one.points
    ]
