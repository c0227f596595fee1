"""Market capitalization of a token: now, and at the end of each interval."""

from collections.abc import Sequence

from msgspec import UNSET, UnsetType, structs

from api.engine.rows import as_naive
from api.engine.serving import Snapshot
from api.http.parameters import TimeRange
from api.schema import AsOf, Interval
from api.subjects.buckets import Bucket, carry, read_buckets
from api.subjects.intervals import UNITS
from api.subjects.moments import State, View
from api.tokens.rows import SupplyChangeRow
from api.tokens.supplies import UNKNOWN, Supply, current_supply
from api.values.explaining import BalanceRef, check_explain, explain
from api.values.reading import Link, price_status, read_link, token_price, value_quantities
from api.values.rows import TokenPriceRow
from api.values.schemas import CapitalizationPoint, CurrentCapitalization, Explanation


def current(
    snapshot: Snapshot, view: View, state: State | None, as_of: AsOf, *, explains: bool = False
) -> CurrentCapitalization:
    """Return the capitalization at the newest covered block."""
    link = read_link(snapshot, view.subject)
    price = _price(snapshot, view, link)
    supply = current_supply(view)
    explanation: Explanation | UnsetType = UNSET
    if explains and state is not None:
        moment = (link.pair_key, state.valued_at) if link.pair_key and state.valued_at else None
        held = BalanceRef(None, state.first_block, last_block=state.block_number)
        explanation = explain(snapshot, view, [held], [moment])[0]
    return CurrentCapitalization(
        value=price.market_capitalization if price else None,
        value_status=price.market_capitalization_status if price else link.status,
        price=price.price if price else None,
        price_status=price.price_status if price else link.status,
        supply=supply.shown,
        supply_raw=supply.raw,
        supply_status=supply.status,
        change24h=price.change24h if price else None,
        change24h_status=price.change24h_status if price else link.status,
        as_of=as_of,
        explanation=explanation,
    )


def history(
    snapshot: Snapshot, view: View, state: State | None, asked: TimeRange, interval: Interval, *, explains: bool = False
) -> list[CapitalizationPoint]:
    """Return the capitalization at the end of each interval, oldest first.

    Args:
        snapshot: the version.
        view: the token.
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
    link = read_link(snapshot, view.subject)
    points = _measured(snapshot, view, state, link, buckets, interval)
    if not explains:
        return points
    return _explained(snapshot, view, link, buckets, points)


def _price(snapshot: Snapshot, view: View, link: Link) -> TokenPriceRow | None:
    return token_price(snapshot, view.subject) if link.pair_key is not None else None


def _measured(
    snapshot: Snapshot, view: View, state: State, link: Link, buckets: Sequence[Bucket], interval: Interval
) -> list[CapitalizationPoint]:
    """Value the supply at the end of each interval."""
    if not buckets:
        return []
    changes = snapshot.rows(
        "token_supply_changes",
        SupplyChangeRow,
        **view.keys,
        unit=UNITS[interval],
        from_time=as_naive(buckets[0].start),
        to_time=as_naive(buckets[-1].until),
        last_block=state.block_number,
    )
    known = list(carry(buckets, changes))
    held = [
        (change.total_supply if change else None, link, bucket.at)
        for bucket, change in zip(buckets, known, strict=True)
    ]
    points: list[CapitalizationPoint] = []
    for bucket, change, one in zip(
        buckets, known, value_quantities(snapshot, view.subject.tenant_id, held), strict=True
    ):
        if not bucket.is_covered:
            points.append(_not_covered(bucket, interval))
            continue
        supply = Supply(change.total_supply_raw, change.total_supply, change.supply_status) if change else UNKNOWN
        points.append(
            CapitalizationPoint(
                **bucket.named(interval),
                supply=supply.shown,
                supply_raw=supply.raw,
                supply_status=supply.status,
                price=one.price.price if one.price else None,
                price_status=price_status(link, one.price, bucket.at),
                value=one.value,
                value_status=supply.value_status(one.status) if change else "UnknownSupply",
                is_complete=bucket.is_complete,
            )
        )
    return points


def _explained(
    snapshot: Snapshot,
    view: View,
    link: Link,
    buckets: Sequence[Bucket],
    points: Sequence[CapitalizationPoint],
) -> list[CapitalizationPoint]:
    """Add explanations to the points that are covered."""
    covered = [bucket for bucket in buckets if bucket.first_block is not None]
    held = [BalanceRef(None, bucket.first_block or 0, end=bucket.until) for bucket in covered]
    priced = [(link.pair_key, bucket.at) if link.pair_key else None for bucket in covered]
    explained = dict(zip((bucket.start for bucket in covered), explain(snapshot, view, held, priced), strict=True))
    return [
        structs.replace(point, explanation=explained.get(bucket.start, UNSET))
        for bucket, point in zip(buckets, points, strict=True)
    ]


def _not_covered(bucket: Bucket, interval: Interval) -> CapitalizationPoint:
    return CapitalizationPoint(
        **bucket.named(interval),
        supply=None,
        supply_raw=None,
        supply_status="NotCovered",
        price=None,
        price_status="NotCovered",
        value=None,
        value_status="NotCovered",
        is_complete=False,
    )
