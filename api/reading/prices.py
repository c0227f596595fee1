"""Prices of pairs: the newest one, the one at a moment, and their history.

The price at a moment is the step of the pair's system price that holds it. What a quantity is worth by it does not go
here but into `values`.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta

from api.price_rows import LatestPriceRow, PriceAtRow
from api.rows import as_naive, as_utc
from api.schemas.prices import LatestPrice
from api.serving import Snapshot


def latest_prices(
    snapshot: Snapshot, tenant_id: str, pair_keys: Collection[int], now: datetime
) -> dict[int, LatestPrice]:
    """Return the newest system price of each pair at an instant; a pair that never had one is missing.

    A price that is older than the pair allows is still told, as stale, also where no cycle has looked at it since.
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
"""Pairs, by their keys, at aware instants."""


def prices_at(snapshot: Snapshot, tenant_id: str, moments: Moments) -> Mapping[tuple[int, datetime], PriceAtRow]:
    """Return the steps of system prices that hold at moments; before a pair's first price there is none."""
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

    # The pages of one answer all ask for the same moment.
    rows = snapshot.remember(("prices-at", tenant_id, *wanted), read) if len(wanted) == 1 else read()
    return {(row.pair_key, as_utc(row.moment)): row for row in rows}


def _is_too_old(row: LatestPriceRow, now: datetime) -> bool:
    """Say whether a price is older than its pair allows; never judged stricter than the window that it closes."""
    if row.max_age_seconds is None:
        return False
    window = row.effective_from - row.window_start if row.window_start else timedelta()
    return now - as_utc(row.effective_from) > max(timedelta(seconds=row.max_age_seconds), window)
