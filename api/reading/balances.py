"""Balances of a wallet: positions at a moment, and their history by intervals of time."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby

from api.parameters import TimeRange
from api.reading.activities import to_reference
from api.reading.intervals import UNITS, bounds, intervals, label
from api.reading.moments import State, View, covered_range_at
from api.reading.values import value_status
from api.rows import BalanceAsOfRow, BalanceChangeRow, PositionRow, TokenIdRow, as_naive, as_utc
from api.schemas.common import Interval
from api.schemas.wallets import BalanceHistoryRow, BalancePoint, BalanceSeries, Position
from api.serving import Snapshot
from control.networks.families import codec_for

_EARLIEST = datetime.min.replace(tzinfo=UTC)
_MOST_POSITIONS = 2**62


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
    rows = _positions_now(snapshot, view) if state.is_current else _positions_then(snapshot, view, state)
    present = codec_for(view.subject.family).present
    return [
        Position(
            token=to_reference(present, row.token_address, row.token_symbol, row.token_id),
            quantity=row.quantity or row.quantity_raw,
            quantity_raw=row.quantity_raw,
            value=None,
            value_status=value_status(row.quantity),
            reconciliation=row.reconciliation,
            checked_block_number=row.checked_block_number,
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
        unit=UNITS[interval],
        from_time=as_naive(buckets[0].start),
        to_time=as_naive(buckets[-1].end),
        last_block=state.block_number,
    )
    present, token_ids = codec_for(view.subject.family).present, _token_ids(snapshot, view)
    series: list[BalanceSeries] = []
    for token_address, group in groupby(rows, key=lambda row: row.token_address):
        changes = list(group)
        points = list(_points(buckets, changes, interval))
        if any(point.quantity_raw not in (None, "0") for point in points):
            token = to_reference(present, token_address, changes[-1].token_symbol, token_ids.get(token_address))
            series.append(BalanceSeries(token=token, points=points))
    return series


def _positions_now(snapshot: Snapshot, view: View) -> list[PositionRow]:
    keys = {"subject_key": view.subject.subject_key, "tenant_id": view.subject.tenant_id}
    return snapshot.rows("wallet_balances", PositionRow, **keys)


def _positions_then(snapshot: Snapshot, view: View, state: State) -> list[PositionRow]:
    rows = snapshot.rows(
        "balances_as_of",
        BalanceAsOfRow,
        subject_key=view.subject.subject_key,
        tenant_id=view.subject.tenant_id,
        first_block=state.first_block,
        block_number=state.block_number,
        total_supply_raw=None,
        is_by_address=True,
        direction=1,
        after_position=0,
        row_count=_MOST_POSITIONS,
    )
    token_ids = _token_ids(snapshot, view)
    return [
        PositionRow(
            token_address=row.token_address,
            token_id=token_ids.get(row.token_address),
            token_symbol=row.token_symbol,
            quantity_raw=row.quantity_raw,
            quantity=row.quantity,
            reconciliation=row.reconciliation,
            checked_block_number=row.checked_block_number,
        )
        for row in rows
    ]


def _token_ids(snapshot: Snapshot, view: View) -> dict[str, str]:
    """Return the ids of the tenant's own tokens among the wallet's assets, by their addresses."""
    keys = {"subject_key": view.subject.subject_key, "tenant_id": view.subject.tenant_id}

    def read() -> dict[str, str]:
        return {row.token_address: row.token_id for row in snapshot.rows("wallet_token_ids", TokenIdRow, **keys)}

    return snapshot.remember(("token-ids", *keys.values()), read)


def _points(
    buckets: Sequence[Bucket], changes: Sequence[BalanceChangeRow], interval: Interval
) -> Iterator[BalancePoint]:
    """Carry the last change forward, but never across a gap: a range's balances are read anew when it begins."""
    starts = [_EARLIEST if change.bucket is None else as_utc(change.bucket) for change in changes]
    for bucket in buckets:
        position = bisect_left(starts, bucket.end) - 1
        known = changes[position] if position >= 0 else None
        if known is not None and known.range_from_block != bucket.first_block:
            known = None
        yield BalancePoint(
            date=label(bucket.start, interval),
            quantity=(known.balance or known.balance_raw) if known else None,
            quantity_raw=known.balance_raw if known else None,
            quantity_status="Known" if known else "NotCovered",
            is_complete=bucket.is_over and bucket.first_block is not None,
        )


def _bounded(view: View, asked: TimeRange, newest: datetime) -> tuple[datetime, datetime]:
    start, end = bounds(asked, newest)
    first = next((as_utc(row.from_time) for row in view.ranges if row.is_covered and row.from_time), None)
    is_before_all = asked.start is None and first is not None and start < first < end
    return (first if is_before_all and first is not None else start), end


def _buckets(view: View, newest: datetime, range_: tuple[datetime, datetime], interval: Interval) -> list[Bucket]:
    buckets: list[Bucket] = []
    for begin, finish in intervals(*range_, newest, interval):
        is_over = finish <= newest
        covered = covered_range_at(view, finish if is_over else newest + timedelta(microseconds=1))
        buckets.append(Bucket(begin, finish, is_over, covered.from_block if covered else None))
    return buckets


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
