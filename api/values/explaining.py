"""Explanations of numbers: the parts of the quantity, the price used, and the sources that were passed over."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from api.engine.rows import as_naive, as_utc
from api.engine.serving import Snapshot
from api.errors import invalid_parameter
from api.prices.reading import prices_at
from api.prices.rows import PriceAtRow, PricePairRow
from api.subjects.moments import View
from api.values.rows import MovementsRow, OriginRow, PassedOverRow
from api.values.schemas import Anchor, Explanation, Movements, PassedOver, PriceExplanation, QuantityExplanation
from control.subjects import Kind

_MOST_ROWS = 100
_MOST_IDS = 20
_END_OF_TIME = datetime.max.replace(tzinfo=UTC)

PairMoment = tuple[int, datetime]
"""A pair key with an aware instant."""


@dataclass(frozen=True, slots=True)
class BalanceRef:
    """A quantity to explain, after a block of a covered range or before an instant in it.

    `address` is the holder of a token, or the asset of a wallet; None means the token's supply.
    """

    address: str | None
    first_block: int
    last_block: int | None = None
    end: datetime | None = None


def check_explain(is_asked: bool, is_tabular: bool, rows: int, parameter: str = "limit") -> None:
    """Check that an answer with a number of rows can have explanations.

    Raises:
        ApiError: 422, the answer is tabular, or has more than 100 rows.
    """
    if is_asked and is_tabular:
        raise invalid_parameter(
            "explain", "json-only", "explain is only for JSON; accept application/json, or leave explain out"
        )
    if is_asked and rows > _MOST_ROWS:
        detail = f"with explain, at most {_MOST_ROWS} rows are answered; ask for fewer by {parameter}"
        raise invalid_parameter(parameter, "too-many-explained", detail)


def explain(
    snapshot: Snapshot, view: View, held: Sequence[BalanceRef], priced: Sequence[PairMoment | None]
) -> list[Explanation]:
    """Explain numbers of one subject, in their order; `priced` is None for a number without a pair or a moment."""
    prices = explain_prices(snapshot, view.subject.tenant_id, (moment for moment in priced if moment))
    return [
        Explanation(quantity=quantity, price=prices.get(moment) if moment else None)
        for quantity, moment in zip(explain_quantities(snapshot, view, held), priced, strict=True)
    ]


def explain_quantities(snapshot: Snapshot, view: View, held: Sequence[BalanceRef]) -> list[QuantityExplanation]:
    """Explain quantities of one kind, in their order: the reading that they start from, and the movements since."""
    if not held:
        return []
    is_supply = held[0].address is None
    keys = view.keys
    bounds: dict[str, Any] = {
        "first_blocks": [one.first_block for one in held],
        "last_blocks": [2**62 if one.last_block is None else one.last_block for one in held],
        "end_times": [as_naive(one.end or _END_OF_TIME) for one in held],
    }
    if is_supply:
        origins = snapshot.rows("explained_supplies", OriginRow, **keys, **bounds)
        # The last reading of the supply includes all movements before it.
        anchors = {row.place: row.anchor_block for row in origins if row.anchor_block is not None}
        later = [max(one.first_block, anchors.get(place, -1) + 1) for place, one in enumerate(held, 1)]
        query, addresses = "explained_supply_movements", {}
        moved = {**bounds, "first_blocks": later}
    else:
        shown = [one.address for one in held]
        own = [view.subject.address] * len(held)
        is_token = view.subject.kind is Kind.TOKEN
        pairs = {"token_addresses": own, "holder_addresses": shown}
        if not is_token:
            pairs = {"token_addresses": shown, "holder_addresses": own}
        origins = snapshot.rows("explained_balances", OriginRow, **keys, **bounds, **pairs)
        query = "explained_token_movements" if is_token else "explained_wallet_movements"
        addresses, moved = {"addresses": shown}, bounds
    movements = snapshot.rows(query, MovementsRow, **keys, **moved, **addresses, most_ids=_MOST_IDS)
    by_place, moved_by_place = {row.place: row for row in origins}, {row.place: row for row in movements}
    return [_quantity(by_place.get(place), moved_by_place.get(place)) for place in range(1, len(held) + 1)]


def explain_activity(
    activity_id: str, amount_raw: str | None, block_number: int, *, is_adjustment: bool
) -> QuantityExplanation:
    """Explain the amount of one activity: its only part is the activity itself."""
    return QuantityExplanation(
        quantity_raw=amount_raw,
        anchor=None,
        movements=Movements(count=1, from_block=block_number, to_block=block_number, latest=[activity_id]),
        adjustments=int(is_adjustment),
    )


def explain_prices(
    snapshot: Snapshot, tenant_id: str, moments: Iterable[PairMoment]
) -> Mapping[PairMoment, PriceExplanation]:
    """Explain the prices at moments; pairs that the version does not have are absent."""
    wanted = sorted(set(moments))
    if not wanted:
        return {}
    pair_keys, instants = [key for key, _ in wanted], [as_naive(instant) for _, instant in wanted]
    rows = snapshot.rows("price_pairs", PricePairRow, tenant_id=tenant_id, pair_keys=pair_keys)
    pairs = {row.pair_key: row for row in rows}
    steps = prices_at(snapshot, tenant_id, wanted)
    sources: dict[PairMoment, list[PassedOverRow]] = defaultdict(list)
    for row in snapshot.rows(
        "newest_source_prices",
        PassedOverRow,
        tenant_id=tenant_id,
        pair_keys=pair_keys,
        moments=instants,
        last_moment=max(instants),
    ):
        sources[row.pair_key, as_utc(row.moment)].append(row)
    return {
        moment: _price(pairs[moment[0]], moment[1], steps.get(moment), sources[moment])
        for moment in wanted
        if moment[0] in pairs
    }


def _quantity(origin: OriginRow | None, moved: MovementsRow | None) -> QuantityExplanation:
    anchor = None
    if origin is not None and origin.anchor_block is not None and origin.anchor_raw is not None:
        anchor = Anchor(block_number=origin.anchor_block, quantity_raw=origin.anchor_raw)
    return QuantityExplanation(
        quantity_raw=origin.quantity_raw if origin else None,
        anchor=anchor,
        movements=Movements(
            count=moved.movement_count if moved else 0,
            from_block=moved.from_block if moved else None,
            to_block=moved.to_block if moved else None,
            latest=moved.latest if moved else [],
        ),
        adjustments=moved.adjustment_count if moved else 0,
    )


def _price(
    pair: PricePairRow, moment: datetime, step: PriceAtRow | None, sources: Sequence[PassedOverRow]
) -> PriceExplanation:
    effective = as_utc(step.effective_from) if step else None
    return PriceExplanation(
        pair_id=pair.pair_id,
        priced_as=pair.priced_as,
        priced_in=pair.priced_in,
        price_type=pair.price_type,
        max_age_seconds=pair.max_age_seconds,
        at=moment,
        price=step.price if step else None,
        price_status=step.price_status if step else "NoPrice",
        price_source=step.source_id if step else None,
        position=step.position if step else None,
        is_fallback=step.is_fallback if step else None,
        derivation=step.derivation if step else None,
        effective_from=effective,
        window_start=as_utc(step.window_start) if step else None,
        is_partial=step.is_partial if step else None,
        age_seconds=_seconds(moment - effective) if effective else None,
        passed_over=[_passed_over(row) for row in sources if _is_passed_over(row, step)],
    )


def _is_passed_over(source: PassedOverRow, used: PriceAtRow | None) -> bool:
    """Return whether a source precedes the used one in order, or is the used one with a newer, unused price."""
    if used is None or used.position is None:
        return True
    if source.position != used.position:
        return source.position < used.position
    return source.effective_from != used.effective_from


def _passed_over(source: PassedOverRow) -> PassedOver:
    reason: Any = "Stale"
    if source.effective_from is None:
        reason = "NoPrice" if source.status == "Resolved" else source.status
    elif source.state in ("Quarantined", "Rejected"):
        reason = source.state
    return PassedOver(
        price_source=source.source_id,
        position=source.position,
        reason=reason,
        detail=source.reason or source.detail,
        price=source.price,
        effective_from=as_utc(source.effective_from),
        fresh_until=as_utc(source.fresh_until),
    )


def _seconds(span: timedelta) -> str:
    """Return a span of time as exact text in seconds."""
    whole, rest = divmod(span // timedelta(microseconds=1), 10**6)
    return f"{whole}.{rest:06d}".rstrip("0").rstrip(".")
