"""Balances of a wallet: positions at a moment, and their history by intervals of time."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from msgspec import UNSET, UnsetType

from api.activities.reading import metadata_statuses, to_reference
from api.engine.rows import as_naive
from api.engine.serving import Snapshot
from api.http.parameters import TimeRange
from api.schema import Interval, TokenReference
from api.subjects.buckets import Bucket, carry, read_buckets
from api.subjects.intervals import UNITS
from api.subjects.moments import State, View
from api.values.explaining import BalanceRef, explain
from api.values.reading import Link, Valuation, price_status, read_links, value_quantities
from api.values.schemas import Explanation
from api.wallets.rows import BalanceAsOfRow, BalanceChangeRow, PositionRow, TokenIdRow
from api.wallets.schemas import BalanceHistoryRow, BalancePoint, BalanceSeries, Position
from control.networks.definitions import NATIVE
from control.networks.families import codec_for


def positions(snapshot: Snapshot, view: View, state: State | None, *, explains: bool = False) -> list[Position]:
    """Return the positions of a wallet at a moment with their values, without zero quantities, by address.

    A tracked wallet without a covered block has one: that of the native asset, without numbers.
    """
    if state is None:
        return [_NOT_YET_COLLECTED] if view.subject.is_tracked else []
    rows = _positions_now(snapshot, view) if state.is_current else _positions_then(snapshot, view, state)
    links, moment = read_links(snapshot, view), state.valued_at
    linked = [links.of(row.token_address) for row in rows]
    values = value_quantities(
        snapshot,
        view.subject.tenant_id,
        [(row.quantity, link, moment) for row, link in zip(rows, linked, strict=True)],
    )
    explained: Sequence[Explanation | UnsetType] = [UNSET] * len(rows)
    if explains:
        held = [BalanceRef(row.token_address, state.first_block, last_block=state.block_number) for row in rows]
        priced = [(link.pair_key, moment) if link.pair_key and moment else None for link in linked]
        explained = explain(snapshot, view, held, priced)
    present = codec_for(view.subject.family).present
    statuses = metadata_statuses(snapshot, view, {row.token_address for row in rows})
    return [
        Position(
            token=to_reference(present, row.token_address, row.token_symbol, row.token_id),
            quantity=row.quantity or row.quantity_raw,
            quantity_raw=row.quantity_raw,
            quantity_status="Known" if row.unread_reason is None else "NotYetCollected",
            detail=row.unread_reason,
            metadata_status=statuses.get(row.token_address),
            value=value.value,
            value_status=value.status if row.unread_reason is None else "NotCovered",
            price=value.price.price if value.price else None,
            price_status=price_status(link, value.price, moment),
            reconciliation=row.reconciliation,
            checked_block_number=row.checked_block_number,
            opened_by=row.opened_by,
            explanation=explanation,
        )
        for row, link, value, explanation in zip(rows, linked, values, explained, strict=True)
    ]


_NOT_YET_COLLECTED = Position(
    token=TokenReference(symbol=None, ledger_id=NATIVE, token_id=None),
    quantity=None,
    quantity_raw=None,
    quantity_status="NotYetCollected",
    detail=None,
    metadata_status=None,
    value=None,
    value_status="NotCovered",
    price=None,
    price_status="UnknownTime",
    reconciliation="Unchecked",
    checked_block_number=None,
    opened_by=None,
)


def is_complete(state: State | None) -> bool:
    """Return whether all holdings at a moment are known: the covered range begins right after the genesis block."""
    return state is not None and state.first_block <= 1


@dataclass(frozen=True, slots=True)
class Balance:
    """The quantity of one asset at the end of one interval; `change` is None if the end is not covered."""

    bucket: Bucket
    change: BalanceChangeRow | None
    worth: Valuation | None

    @property
    def is_held(self) -> bool:
        """True if the quantity is known and not zero."""
        return self.change is not None and self.change.balance_raw != "0"


@dataclass(frozen=True, slots=True)
class AssetHistory:
    """An asset that the wallet held in a range, with its quantity and value at the end of each interval."""

    address: str
    token: TokenReference
    link: Link
    balances: Sequence[Balance]


def history(
    snapshot: Snapshot, view: View, state: State | None, asked: TimeRange, interval: Interval
) -> list[BalanceSeries]:
    """Return the quantities at the end of each interval, for each asset with a quantity other than zero.

    Args:
        snapshot: the version.
        view: the wallet.
        state: the moment of the answer.
        asked: the range; by default it ends at that moment, and begins 30 days before its end.
        interval: length of the intervals; they begin on whole UTC hours, days, Mondays or months.

    Raises:
        ApiError: 422, the range has more than 10,000 intervals.
    """
    if state is None or state.valued_at is None:
        return []
    buckets = read_buckets(view, state, asked, interval)
    return [
        BalanceSeries(token=asset.token, points=[_to_point(balance, interval) for balance in asset.balances])
        for asset in asset_histories(snapshot, view, state, buckets, interval)
    ]


def asset_histories(
    snapshot: Snapshot, view: View, state: State, buckets: Sequence[Bucket], interval: Interval
) -> list[AssetHistory]:
    """Return the assets that a wallet held at the end of at least one interval, with their values, by address."""
    if not buckets or state.valued_at is None:
        return []
    rows = snapshot.rows(
        "wallet_balance_changes",
        BalanceChangeRow,
        **view.keys,
        unit=UNITS[interval],
        from_time=as_naive(buckets[0].start),
        to_time=as_naive(buckets[-1].until),
        last_block=state.block_number,
    )
    present, token_ids = codec_for(view.subject.family).present, _token_ids(snapshot, view)
    links = read_links(snapshot, view)
    found: list[AssetHistory] = []
    for address, group in groupby(rows, key=lambda row: row.token_address):
        changes = list(group)
        known = list(carry(buckets, changes))
        if all(change is None or change.balance_raw == "0" for change in known):
            continue
        link = links.of(address)
        token = to_reference(present, address, changes[-1].token_symbol, token_ids.get(address))
        balances = _valued(snapshot, view, link, buckets, known)
        found.append(AssetHistory(address, token, link, balances))
    return found


def _positions_now(snapshot: Snapshot, view: View) -> list[PositionRow]:
    keys = view.keys
    return snapshot.rows("wallet_balances", PositionRow, **keys)


def _positions_then(snapshot: Snapshot, view: View, state: State) -> list[PositionRow]:
    rows = snapshot.rows(
        "balances_as_of",
        BalanceAsOfRow,
        **view.keys,
        first_block=state.first_block,
        block_number=state.block_number,
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
            opened_by=row.opened_by,
            unread_reason=row.unread_reason,
        )
        for row in rows
    ]


def _token_ids(snapshot: Snapshot, view: View) -> dict[str, str]:
    """Return the ids of the tenant's own tokens among the wallet's assets, by their addresses."""
    keys = view.keys

    def read() -> dict[str, str]:
        return {row.token_address: row.token_id for row in snapshot.rows("wallet_token_ids", TokenIdRow, **keys)}

    return snapshot.get_or_compute(("token-ids", *keys.values()), read)


def _valued(
    snapshot: Snapshot,
    view: View,
    link: Link,
    buckets: Sequence[Bucket],
    known: Sequence[BalanceChangeRow | None],
) -> list[Balance]:
    held = [(change.balance, link, bucket.at) for bucket, change in zip(buckets, known, strict=True) if change]
    values = iter(value_quantities(snapshot, view.subject.tenant_id, held))
    return [
        Balance(bucket, change, next(values) if change else None) for bucket, change in zip(buckets, known, strict=True)
    ]


def _to_point(balance: Balance, interval: Interval) -> BalancePoint:
    known, value = balance.change, balance.worth
    return BalancePoint(
        **balance.bucket.named(interval),
        quantity=(known.balance or known.balance_raw) if known else None,
        quantity_raw=known.balance_raw if known else None,
        quantity_status="Known" if known else "NotCovered",
        value=value.value if value else None,
        value_status=value.status if value else "NotCovered",
        is_complete=balance.bucket.is_complete,
    )


def to_rows(series: Sequence[BalanceSeries]) -> list[BalanceHistoryRow]:
    """Convert a history to rows with one point each, for tabular answers."""
    return [
        BalanceHistoryRow(
            token=one.token,
            date=point.date,
            from_=point.from_,
            to=point.to,
            at=point.at,
            quantity=point.quantity,
            quantity_raw=point.quantity_raw,
            quantity_status=point.quantity_status,
            value=point.value,
            value_status=point.value_status,
            is_complete=point.is_complete,
        )
        for one in series
        for point in one.points
    ]
