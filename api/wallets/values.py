"""Value of a wallet at the end of each interval of a range."""

from collections.abc import Sequence

from msgspec import UNSET, UnsetType, structs

from api.engine.serving import Snapshot
from api.http.parameters import TimeRange
from api.schema import Interval
from api.subjects.buckets import Bucket, read_buckets
from api.subjects.moments import State, View
from api.values.explaining import BalanceRef, check_explain, explain
from api.values.reading import present_assets, total, total_status
from api.values.schemas import PositionExplanation, WalletExplanation, WalletValuePoint
from api.wallets.balances import AssetHistory, asset_histories
from api.wallets.rows import UnreadBalanceRow, WalletValueDayRow
from api.wallets.totals import is_relinked, read_total


def history(
    snapshot: Snapshot, view: View, state: State | None, asked: TimeRange, interval: Interval, *, explains: bool = False
) -> list[WalletValuePoint]:
    """Return the value of the wallet at the end of each interval, oldest first.

    The marts contain the values of days; a week or a month has the value of its last day. This module computes the
    values of hours by the same rule. It also computes days if a link of an asset has changed since the build.

    Args:
        snapshot: the version.
        view: the wallet.
        state: the newest covered block.
        asked: the range; by default it ends at that block, and begins 30 days before its end.
        interval: length of the intervals.
        explains: whether to add explanations to the points.

    Raises:
        ApiError: 422, the range has too many intervals.
    """
    if state is None or state.valued_at is None:
        return []
    buckets = read_buckets(view, state, asked, interval)
    check_explain(explains, False, len(buckets), "from")
    assets: Sequence[AssetHistory] = []
    is_measured = interval == "1h" or is_relinked(snapshot, view)
    if explains or is_measured:
        assets = asset_histories(snapshot, view, state, buckets, interval)
    if is_measured:
        points = _measured(assets, buckets, interval)
    else:
        points = _from_days(snapshot, view, state, buckets, interval)
    points = _without_unread(snapshot, view, buckets, points)
    if not explains:
        return points
    explained = _explained(snapshot, view, assets, buckets)
    return [
        structs.replace(point, explanation=explanation) for point, explanation in zip(points, explained, strict=True)
    ]


def _from_days(
    snapshot: Snapshot, view: View, state: State, buckets: Sequence[Bucket], interval: Interval
) -> list[WalletValuePoint]:
    if not buckets:
        return []
    rows = snapshot.rows(
        "wallet_value_days",
        WalletValueDayRow,
        **view.keys,
        first_day=buckets[0].last_day,
        last_day=buckets[-1].last_day,
    )
    days, now = {row.day: row for row in rows}, read_total(snapshot, view)
    points: list[WalletValuePoint] = []
    for bucket in buckets:
        day = days.get(bucket.last_day) if bucket.is_complete else None
        if day is not None:
            found = (day.value, day.value_status, day.value_complete, day.unpriced)
        elif bucket.is_cut:
            points += _measured(asset_histories(snapshot, view, state, [bucket], interval), [bucket], interval)
            continue
        elif bucket.is_covered and bucket.is_newest and now is not None:
            found = (now.total_value, now.total_value_status, now.value_complete, now.unpriced)
        else:
            points.append(_not_covered(bucket, interval))
            continue
        value, status, is_whole, unpriced = found
        points.append(
            WalletValuePoint(
                **bucket.named(interval),
                value=value,
                value_status=status,
                value_complete=is_whole,
                unpriced=present_assets(view.subject.family, unpriced),
                is_complete=bucket.is_complete,
            )
        )
    return points


def _measured(assets: Sequence[AssetHistory], buckets: Sequence[Bucket], interval: Interval) -> list[WalletValuePoint]:
    """Add up the values of the positions at the end of each interval, as the marts do for days."""
    points: list[WalletValuePoint] = []
    for place, bucket in enumerate(buckets):
        if not bucket.is_covered:
            points.append(_not_covered(bucket, interval))
            continue
        held = [
            (asset.token.symbol or asset.token.ledger_id, balance.worth)
            for asset in assets
            if (balance := asset.balances[place]).is_held and balance.worth
        ]
        unpriced = sorted(name for name, value in held if value.value is None)
        status = total_status([value.status for _, value in held])
        points.append(
            WalletValuePoint(
                **bucket.named(interval),
                value=total(value.value for _, value in held if value.value) if status == "Priced" else None,
                value_status=status,
                value_complete=not unpriced,
                unpriced=unpriced,
                is_complete=bucket.is_complete,
            )
        )
    return points


def _without_unread(
    snapshot: Snapshot, view: View, buckets: Sequence[Bucket], points: Sequence[WalletValuePoint]
) -> list[WalletValuePoint]:
    """Name the assets without a known balance at each point; where nothing else is held, the value is unknown."""
    rows = snapshot.rows("unread_balances", UnreadBalanceRow, **view.keys)
    found: list[WalletValuePoint] = []
    for point, bucket in zip(points, buckets, strict=True):
        unread = present_assets(
            view.subject.family, [row.asset for row in rows if row.range_from_block == bucket.first_block]
        )
        if unread:
            is_empty = point.value == "0" and not point.unpriced
            point = structs.replace(
                point,
                value=None if is_empty else point.value,
                value_status="NotCovered" if is_empty else point.value_status,
                value_complete=False,
                unpriced=sorted({*point.unpriced, *unread}),
            )
        found.append(point)
    return found


def _explained(
    snapshot: Snapshot, view: View, assets: Sequence[AssetHistory], buckets: Sequence[Bucket]
) -> list[WalletExplanation | UnsetType]:
    """Explain the positions at the end of each interval; intervals that are not covered have no explanation."""
    places = [
        (place, asset)
        for place, bucket in enumerate(buckets)
        for asset in assets
        if bucket.is_covered and asset.balances[place].is_held
    ]
    held = [BalanceRef(asset.address, buckets[at].first_block or 0, end=buckets[at].until) for at, asset in places]
    priced = [(asset.link.pair_key, buckets[at].at) if asset.link.pair_key else None for at, asset in places]
    positions: dict[int, list[PositionExplanation]] = {}
    for (place, asset), explanation in zip(places, explain(snapshot, view, held, priced), strict=True):
        change, value = asset.balances[place].change, asset.balances[place].worth
        positions.setdefault(place, []).append(
            PositionExplanation(
                token=asset.token,
                quantity=(change.balance or change.balance_raw) if change else None,
                value=value.value if value else None,
                value_status=value.status if value else "NoPair",
                explanation=explanation,
            )
        )
    return [
        WalletExplanation(positions=positions.get(place, [])) if bucket.is_covered else UNSET
        for place, bucket in enumerate(buckets)
    ]


def _not_covered(bucket: Bucket, interval: Interval) -> WalletValuePoint:
    return WalletValuePoint(
        **bucket.named(interval),
        value=None,
        value_status="NotCovered",
        value_complete=False,
        unpriced=[],
        is_complete=False,
    )
