"""Prices of pairs: the newest one, the one at a moment, and their history.

The price at a moment is the step of the pair's system price that contains it. `api.values` computes values of
quantities.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from api.engine.rows import as_naive, as_utc
from api.engine.serving import Snapshot
from api.errors import ApiError
from api.http.calls import Fetch, Fetched
from api.http.paging import Key
from api.http.parameters import INSTANT, TimeRange
from api.prices.rows import LatestPriceRow, PriceAtRow, PriceStepRow, SourcePriceRow
from api.prices.schemas.prices import LatestPrice, PricePoint
from api.schema import Interval
from api.subjects.intervals import bounds, intervals, label
from api.subjects.resumable import cut
from control.pricing.pairs import PairRow
from control.subjects import SubjectRow

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_TIME = datetime(1, 1, 1, tzinfo=UTC)


def latest_prices(
    snapshot: Snapshot, tenant_id: str, pair_keys: Collection[int], now: datetime
) -> dict[int, LatestPrice]:
    """Return the newest system price of each pair at an instant; pairs without a price are absent.

    A price older than the pair's maximum age is marked as stale, even if no cycle ran since it became too old.
    """
    if not pair_keys:
        return {}
    rows = snapshot.rows(
        "latest_prices", LatestPriceRow, tenant_id=tenant_id, pair_keys=sorted(pair_keys), moment=as_naive(now)
    )
    return {
        row.pair_key: LatestPrice(
            price=row.price,
            effective_from=as_utc(row.effective_from),
            price_source=row.source_id,
            is_fallback=row.is_fallback,
            is_stale=not row.is_in_force or _is_too_old(row, now),
        )
        for row in rows
    }


Moments = Iterable[tuple[int, datetime]]
"""Pair keys with aware instants."""


def prices_at(snapshot: Snapshot, tenant_id: str, moments: Moments) -> Mapping[tuple[int, datetime], PriceAtRow]:
    """Return the steps of system prices at moments; moments before a pair's first price are absent."""
    found: dict[tuple[int, datetime], PriceAtRow] = {}
    wanted = sorted(set(moments))
    if not wanted:
        return found
    instants = [as_naive(instant) for _, instant in wanted]

    def read() -> list[PriceAtRow]:
        return snapshot.rows(
            "prices_at",
            PriceAtRow,
            tenant_id=tenant_id,
            pair_keys=[pair_key for pair_key, _ in wanted],
            moments=instants,
            first_moment=min(instants),
            last_moment=max(instants),
        )

    # All pages of one answer need prices at the same moment.
    rows = snapshot.get_or_compute(("prices-at", tenant_id, *wanted), read) if len(wanted) == 1 else read()
    return {(row.pair_key, as_utc(row.moment)): row for row in rows}


@dataclass(frozen=True, slots=True)
class PriceFilters:
    """Pair, range (of `validFrom`, or of `effectiveFrom` for one source), and latest instant of prices."""

    pair: PairRow
    times: TimeRange
    now: datetime


def price_steps(filters: PriceFilters) -> Fetch[PricePoint]:
    """Return the reader of the steps of a pair's system price that have a price, newest first.

    Steps that begin after `now`, when a price will become too old, are not included.
    """

    def fetch(snapshot: Snapshot, after: Key | None, limit: int) -> Fetched[PricePoint]:
        rows = snapshot.rows("price_steps", PriceStepRow, **_conditions(filters, after), row_count=limit + 1)
        return cut(rows, limit, to_points, lambda row: _key(as_utc(row.valid_from)))

    def to_points(rows: Sequence[PriceStepRow]) -> list[PricePoint]:
        return [to_point(row) for row in rows]

    def to_point(row: PriceStepRow) -> PricePoint:
        return PricePoint(
            date=None,
            from_=None,
            to=None,
            at=None,
            price=row.price,
            price_status="Priced",
            price_type=filters.pair.price_type.value,
            price_source=row.source_id,
            is_fallback=row.is_fallback,
            effective_from=as_utc(row.effective_from),
            window_start=as_utc(row.window_start),
            is_partial=row.is_partial,
            derivation=row.derivation,
            valid_from=as_utc(row.valid_from),
            valid_until=as_utc(row.valid_until),
            is_complete=None,
            price_id=None,
            state=None,
            reason=None,
        )

    return fetch


def source_prices(filters: PriceFilters, source_id: str) -> Fetch[PricePoint]:
    """Return the reader of one source's prices of a pair, used and unused ones, newest first."""

    def fetch(snapshot: Snapshot, after: Key | None, limit: int) -> Fetched[PricePoint]:
        rows = snapshot.rows(
            "source_prices", SourcePriceRow, **_conditions(filters, after), source_id=source_id, row_count=limit + 1
        )
        return cut(rows, limit, to_points, lambda row: _key(as_utc(row.effective_from)))

    def to_points(rows: Sequence[SourcePriceRow]) -> list[PricePoint]:
        return [to_point(row) for row in rows]

    def to_point(row: SourcePriceRow) -> PricePoint:
        return PricePoint(
            date=None,
            from_=None,
            to=None,
            at=None,
            price=row.price,
            price_status="Priced" if row.state in ("Used", "Accepted") else "Quarantined",
            price_type=filters.pair.price_type.value,
            price_source=source_id,
            is_fallback=row.position > 0,
            effective_from=as_utc(row.effective_from),
            window_start=as_utc(row.window_start),
            is_partial=row.is_partial,
            derivation=row.derivation,
            valid_from=None,
            valid_until=as_utc(row.fresh_until),
            is_complete=None,
            price_id=row.price_id,
            state=row.state,
            reason=row.reason,
        )

    return fetch


def interval_prices(filters: PriceFilters, interval: Interval) -> Fetch[PricePoint]:
    """Return the reader of the system price at the end of each interval, or at `now` for the current one, newest first.

    Raises:
        ApiError: 422, the range has more than 10,000 intervals.
    """
    start, end = bounds(filters.times, filters.now)
    spans = intervals(start, end, filters.now, interval)[::-1]

    def fetch(snapshot: Snapshot, after: Key | None, limit: int) -> Fetched[PricePoint]:
        left = [span for span in spans if after is None or _key(span[0]) < after]
        kept = left[:limit]
        moments = [min(finish, end, filters.now + INSTANT) - INSTANT for _, finish in kept]
        pair_key = filters.pair.pair_key
        steps = prices_at(snapshot, filters.pair.tenant_id, [(pair_key, moment) for moment in moments])
        points = [
            to_point(begin, finish, moment, steps.get((pair_key, moment)))
            for (begin, finish), moment in zip(kept, moments, strict=True)
        ]
        return Fetched(points, _key(kept[-1][0]) if len(left) > limit else None)

    def to_point(begin: datetime, finish: datetime, moment: datetime, step: PriceAtRow | None) -> PricePoint:
        return PricePoint(
            date=label(begin, interval),
            from_=begin,
            to=finish,
            at=moment if finish <= filters.now or moment < filters.now else None,
            price=step.price if step else None,
            price_status=step.price_status if step else "NoPrice",
            price_type=filters.pair.price_type.value,
            price_source=step.source_id if step else None,
            is_fallback=step.is_fallback if step else None,
            effective_from=as_utc(step.effective_from) if step else None,
            window_start=as_utc(step.window_start) if step else None,
            is_partial=step.is_partial if step else None,
            derivation=step.derivation if step else None,
            valid_from=as_utc(step.valid_from) if step else None,
            valid_until=as_utc(step.valid_until) if step else None,
            is_complete=finish <= min(end, filters.now),
            price_id=None,
            state=None,
            reason=None,
        )

    return fetch


def _conditions(filters: PriceFilters, after: Key | None) -> dict[str, Any]:
    """Return the bounds of a page; the key is the time of the last row, in microseconds of Unix time."""
    just_after_now = filters.now + INSTANT
    end = min(filters.times.end or just_after_now, just_after_now)
    if after is not None:
        end = _EPOCH + timedelta(microseconds=int(after[0]))
    return {
        "tenant_id": filters.pair.tenant_id,
        "pair_key": filters.pair.pair_key,
        "from_time": as_naive(filters.times.start or _FIRST_TIME),
        "to_time": as_naive(end),
    }


def _key(instant: datetime) -> tuple[int]:
    return ((instant - _EPOCH) // INSTANT,)


def _is_too_old(row: LatestPriceRow, now: datetime) -> bool:
    """Return whether a price is older than its pair's maximum age, or than its own window if that is longer."""
    if row.max_age_seconds is None:
        return False
    window = row.effective_from - row.window_start if row.window_start else timedelta()
    return now - as_utc(row.effective_from) > max(timedelta(seconds=row.max_age_seconds), window)


def require_link(token: SubjectRow) -> tuple[str, str, str]:
    """Return id, Priced As and Priced In of the pair that a token is linked to.

    Raises:
        ApiError: 409 `no-linked-pair`.
    """
    if token.pair_id is None or token.priced_as is None or token.priced_in is None:
        raise ApiError(
            409,
            "no-linked-pair",
            f"{token.id} is not linked to a pair, so it has no price; link it by PUT /v1/tokens/{token.id}/priced-as",
        )
    return token.pair_id, token.priced_as, token.priced_in
