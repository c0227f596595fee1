"""Activities of a token or a wallet: filters, order, and rows of the answer."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from api.activities.rows import (
    ActivityBlockRow,
    ActivityDigestRow,
    ActivityExtentRow,
    ActivityValueRow,
    DescribedActivityRow,
    MetadataStatusRow,
    TokenActivityRow,
    TransactionDetail,
    WalletActivityRow,
)
from api.activities.schemas import (
    DescribedWalletActivity,
    TokenActivity,
    Transaction,
    TransactionInput,
    TransactionOutput,
    WalletActivity,
)
from api.engine.rows import as_naive, as_utc
from api.engine.serving import Snapshot
from api.http.calls import Fetched
from api.http.paging import Key
from api.http.parameters import TimeRange
from api.schema import ActivityValueStatus, AsOf, MetadataStatus, TokenReference, ValueStatus
from api.subjects.moments import View
from api.subjects.names import Labels, Names
from api.subjects.resumable import ResumableCollection, cut
from api.values.explaining import PairMoment, explain_activity, explain_prices
from api.values.reading import CURRENCY, Link, amount_text, read_link, read_links, value_status
from api.values.schemas import Explanation
from control.errors import NotFound
from control.networks.definitions import NATIVE

Activity = TypeVar("Activity", TokenActivityRow, WalletActivityRow)

_FIRST_SPAN_ROWS = 16  # the first span has blocks for this many pages, if activities are evenly spaced
_SPAN_GROWTH = 16  # keeps the number of queries low even if a filter matches nothing

# Bounds of a filter without a range.
FIRST_TIME, LAST_TIME = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)

# Block numbers before and after all blocks. With these, the parts of a key after the block do not matter.
_BEFORE_ALL, _AFTER_ALL = -1, 2**63 - 1

# Bounds of transaction positions. Activities that follow from balance readings have the first.
_NO_TRANSACTION, _LAST_TRANSACTION = -1, 2**31 - 1

# Parts of a key, as suffixes of the queries' parameters.
_KEYS = {"token": ("block", "transaction", "log", "id"), "wallet": ("block", "transaction", "log", "trace", "id")}


@dataclass(frozen=True, slots=True)
class TokenFilters:
    """Conditions on a token's activities; None means no condition. Addresses in stored form, amounts in base units.

    `explains` adds explanations to the rows; `newest_first` sets the order.
    """

    times: TimeRange
    activity_type: str | None
    status: str | None
    wallet: str | None
    minimum_raw: int | None
    newest_first: bool
    explains: bool = False


@dataclass(frozen=True, slots=True)
class WalletFilters:
    """Conditions on a wallet's activities, as in `TokenFilters`."""

    times: TimeRange
    activity_type: str | None
    direction: str | None
    token_address: str | None
    counterparty: str | None
    newest_first: bool
    explains: bool = False


def token_activities(view: View, names: Names, filters: TokenFilters) -> ResumableCollection[TokenActivity]:
    """Return the collection of a token's activities."""
    present = view.subject.present
    conditions = {
        **_conditions(view, filters.times),
        "activity_type": filters.activity_type,
        "status": filters.status,
        "wallet": filters.wallet,
        "minimum_raw": None if filters.minimum_raw is None else str(filters.minimum_raw),
    }

    def fetch(snapshot: Snapshot, after: Key | None, limit: int) -> Fetched[TokenActivity]:
        newest_first = filters.newest_first
        block, transaction, log, activity_id = after or (_AFTER_ALL if newest_first else _BEFORE_ALL, 0, 0, "")
        within = {"after_transaction": transaction, "after_log": log, "after_id": activity_id}
        rows = _read(
            snapshot, TokenActivityRow, "token", conditions, int(block), within, limit + 1, newest_first=newest_first
        )
        return cut(rows, limit, lambda kept: to_items(snapshot, kept), to_key)

    def to_items(snapshot: Snapshot, rows: Sequence[TokenActivityRow]) -> list[TokenActivity]:
        link = read_link(snapshot, view.subject)
        values = _values(snapshot, view, "token", rows, lambda _: link)
        explained = _explain(snapshot, view, rows, values) if filters.explains else {}
        labels = names.of([side for row in rows for side in (row.from_address, row.to_address) if side])
        return [to_item(row, link, labels, values.get(row.activity_id), explained.get(row.activity_id)) for row in rows]

    def to_item(
        row: TokenActivityRow,
        link: Link,
        labels: Labels,
        value: ActivityValueRow | None,
        explanation: Explanation | None,
    ) -> TokenActivity:
        return TokenActivity(
            id=row.activity_id,
            type=row.activity_type,
            date=as_utc(row.block_time),
            status=row.status,
            from_wallet=_shown(present, row.from_address),
            from_name=_named(labels, row.from_address),
            to_wallet=_shown(present, row.to_address),
            to_name=_named(labels, row.to_address),
            amount=row.amount or row.amount_raw,
            amount_raw=row.amount_raw,
            value=value.value if value else None,
            value_status=_value_status(row, link, value),
            price=value.price if value else None,
            price_status=_price_status(link, value),
            transaction_hash=row.transaction_hash,
            log_index=None if row.log_index < 0 else row.log_index,
            located=row.is_located,
            block_number=row.block_number,
            explanation=explanation or UNSET,
        )

    def to_key(row: TokenActivityRow) -> Key:
        return (row.block_number, row.transaction_index, row.log_index, row.activity_id)

    return ResumableCollection(fetch, lambda snapshot, first, last: _digest(snapshot, "token", conditions, first, last))


def wallet_activities(view: View, names: Names, filters: WalletFilters) -> ResumableCollection[WalletActivity]:
    """Return the collection of a wallet's activities."""
    conditions = {
        **_conditions(view, filters.times),
        "activity_type": filters.activity_type,
        "direction": filters.direction,
        "token_address": filters.token_address,
        "counterparty": filters.counterparty,
    }

    def fetch(snapshot: Snapshot, after: Key | None, limit: int) -> Fetched[WalletActivity]:
        newest_first = filters.newest_first
        block, transaction, log, trace, activity_id = after or (
            _AFTER_ALL if newest_first else _BEFORE_ALL,
            0,
            0,
            0,
            "",
        )
        within = {
            "after_transaction": transaction,
            "after_log": log,
            "after_trace": trace,
            "after_id": activity_id,
        }
        rows = _read(
            snapshot, WalletActivityRow, "wallet", conditions, int(block), within, limit + 1, newest_first=newest_first
        )
        return cut(rows, limit, lambda kept: to_items(snapshot, kept), to_key)

    def to_items(snapshot: Snapshot, rows: Sequence[WalletActivityRow]) -> list[WalletActivity]:
        return _to_wallet_activities(snapshot, view, names, rows, explains=filters.explains)

    def to_key(row: WalletActivityRow) -> Key:
        trace = -1 if row.trace_index is None else row.trace_index
        return (row.block_number, row.transaction_index, row.log_index, trace, row.activity_id)

    return ResumableCollection(
        fetch, lambda snapshot, first, last: _digest(snapshot, "wallet", conditions, first, last)
    )


def read_wallet_activity(
    snapshot: Snapshot, view: View, names: Names, activity_id: str, as_of: AsOf, *, explains: bool
) -> DescribedWalletActivity:
    """Return one activity of a wallet with its transaction.

    Raises:
        NotFound: the wallet has no activity with this id in this version.
    """
    rows = snapshot.rows(
        "wallet_activity",
        DescribedActivityRow,
        **view.keys,
        network=view.subject.network,
        activity_id=activity_id,
    )
    if not rows:
        raise NotFound("activity", activity_id)
    (item,) = _to_wallet_activities(snapshot, view, names, rows, explains=explains)
    return DescribedWalletActivity(
        **{name: getattr(item, name) for name in item.__struct_fields__},
        transaction=_to_transaction(view.subject.present, rows[0]),
        currency=CURRENCY,
        as_of=as_of,
    )


def _to_wallet_activities(
    snapshot: Snapshot, view: View, names: Names, rows: Sequence[WalletActivityRow], *, explains: bool
) -> list[WalletActivity]:
    present = view.subject.present
    links = read_links(snapshot, view)
    values = _values(snapshot, view, "wallet", rows, lambda row: links.of(row.token_address))
    explained = _explain(snapshot, view, rows, values) if explains else {}
    labels = names_of_counterparties(names, rows)
    statuses = metadata_statuses(snapshot, view, {row.token_address for row in rows})
    return [
        to_wallet_activity(
            present,
            row,
            statuses,
            labels,
            links.of(row.token_address),
            values.get(row.activity_id),
            explained.get(row.activity_id),
        )
        for row in rows
    ]


def _to_transaction(present: Callable[[str], str], row: DescribedActivityRow) -> Transaction | None:
    if row.detail is None:
        return None
    detail = msgspec.json.decode(row.detail, type=TransactionDetail)
    decimals = row.native_decimals
    return Transaction(
        header_time=datetime.fromtimestamp(detail.header_time, UTC),
        input_count=detail.input_count,
        output_count=detail.output_count,
        inputs=[
            TransactionInput(
                output=one.output,
                address=_shown(present, one.address),
                amount=None if one.amount_raw is None else amount_text(int(one.amount_raw), decimals),
                amount_raw=one.amount_raw,
            )
            for one in detail.inputs
        ],
        outputs=[
            TransactionOutput(
                address=_shown(present, one.address),
                amount=amount_text(int(one.amount_raw), decimals),
                amount_raw=one.amount_raw,
            )
            for one in detail.outputs
        ],
        spendable_from_block=detail.spendable_from_block,
    )


def names_of_counterparties(names: Names, rows: Sequence[WalletActivityRow]) -> Labels:
    """Return the tenant's labels of the counterparties of a wallet's activities."""
    return names.of([row.counterparty_address for row in rows if row.counterparty_address])


def to_wallet_activity(
    present: Callable[[str], str],
    row: WalletActivityRow,
    statuses: Mapping[str, MetadataStatus],
    labels: Labels,
    link: Link,
    value: ActivityValueRow | None,
    explanation: Explanation | None = None,
) -> WalletActivity:
    """Return a wallet's activity with its value (None: `link` gives the reason); `present` formats addresses."""
    counterparties = row.counterparties
    if counterparties is None:
        counterparties = [] if row.counterparty_address is None else [row.counterparty_address]
    return WalletActivity(
        id=row.activity_id,
        type=row.activity_type,
        direction=row.direction,
        date=as_utc(row.block_time),
        status=row.status,
        counterparty=_shown(present, row.counterparty_address),
        counterparty_name=_named(labels, row.counterparty_address),
        token=to_reference(present, row.token_address, row.token_symbol, row.token_id),
        amount=row.amount or row.amount_raw,
        amount_raw=row.amount_raw,
        amount_status=row.amount_status,
        metadata_status=statuses.get(row.token_address),
        value=value.value if value else None,
        value_status=_value_status(row, link, value),
        price=value.price if value else None,
        price_status=_price_status(link, value),
        transaction_hash=row.transaction_hash,
        trace_index=row.trace_index,
        located=row.is_located,
        block_number=row.block_number,
        counterparties=[present(one) for one in counterparties],
        counterparty_count=row.counterparty_count,
        counterparty_status=row.counterparty_status,
        fee=row.fee or row.fee_raw,
        fee_raw=row.fee_raw,
        fee_status=row.fee_status,
        explanation=explanation or UNSET,
    )


def metadata_statuses(snapshot: Snapshot, view: View, addresses: Collection[str]) -> dict[str, MetadataStatus]:
    """Return the result of a second reading of each contract, by address; contracts that were not read are absent."""
    rows = snapshot.rows(
        "metadata_statuses",
        MetadataStatusRow,
        tenant_id=view.subject.tenant_id,
        network=view.subject.network,
        token_addresses=sorted(addresses),
    )
    return {row.token_address: row.metadata_status for row in rows}


def to_reference(
    present: Callable[[str], str], token_address: str, symbol: str | None, token_id: str | None
) -> TokenReference:
    """Return the struct of an asset for answers."""
    shown = NATIVE if token_address == NATIVE else present(token_address)
    return TokenReference(symbol=symbol, ledger_id=shown, token_id=token_id)


def _values(
    snapshot: Snapshot, view: View, kind: str, rows: Sequence[Activity], link_of: Callable[[Activity], Link]
) -> dict[str, ActivityValueRow]:
    """Return the values of a page of activities at their own time, by id.

    Activities without a pair are absent, and also those that the version values by another pair than the link's.
    """
    pairs = {row.activity_id: link_of(row).pair_key for row in rows}
    if not any(pairs.values()):
        return {}
    blocks, transactions = [row.block_number for row in rows], [row.transaction_index for row in rows]
    is_one_block = min(blocks) == max(blocks)
    found = snapshot.rows(
        f"{kind}_activity_values",
        ActivityValueRow,
        **view.keys,
        first_block=min(blocks),
        last_block=max(blocks),
        first_transaction=min(transactions) if is_one_block else _NO_TRANSACTION,
        last_transaction=max(transactions) if is_one_block else _LAST_TRANSACTION,
    )
    return {row.activity_id: row for row in found if row.pair_key == pairs.get(row.activity_id)}


def _value_status(row: Activity, link: Link, value: ActivityValueRow | None) -> ActivityValueStatus:
    if value is not None:
        return value.value_status
    if row.amount_raw is None:
        return "UnknownAmount"
    return value_status(row.amount, link.status if link.pair_key is None else "NoPrice")


def _price_status(link: Link, value: ActivityValueRow | None) -> ValueStatus:
    if value is None:
        return link.status if link.pair_key is None else "NoPrice"
    if value.price is not None:
        return "Priced"
    # If both amount and price are missing, the value status reports the missing amount and the price status is NoPrice.
    status = value.value_status
    return "NoPrice" if status == "UnknownDecimals" or status == "UnknownAmount" else status


def _explain(
    snapshot: Snapshot, view: View, rows: Sequence[Activity], values: Mapping[str, ActivityValueRow]
) -> dict[str, Explanation]:
    def moment(row: Activity) -> PairMoment | None:
        value = values.get(row.activity_id)
        return None if value is None or value.pair_key is None else (value.pair_key, as_utc(row.block_time))

    priced = {row.activity_id: found for row in rows if (found := moment(row))}
    prices = explain_prices(snapshot, view.subject.tenant_id, priced.values())
    return {
        row.activity_id: Explanation(
            quantity=explain_activity(
                row.activity_id,
                row.amount_raw,
                row.block_number,
                is_adjustment=row.transaction_hash is None,
            ),
            price=prices.get(priced[row.activity_id]) if row.activity_id in priced else None,
        )
        for row in rows
    }


def _conditions(view: View, times: TimeRange) -> dict[str, Any]:
    return {
        "subject_key": view.subject.subject_key,
        "tenant_id": view.subject.tenant_id,
        "from_time": as_naive(times.start or FIRST_TIME),
        "to_time": as_naive(times.end or LAST_TIME),
    }


def _read(
    snapshot: Snapshot,
    row_type: type[Activity],
    kind: str,
    conditions: dict[str, Any],
    block: int,
    within: dict[str, Any],
    count: int,
    *,
    newest_first: bool,
) -> list[Activity]:
    """Read one page after a position in a block (`within`): first find its blocks, then read its rows.

    The rows are wide. Searching all 100,000 activities of a wallet takes 60 ms of CPU time; the blocks of a page, 5 ms.
    """
    # Clients that poll request the same page repeatedly while a version is in force.
    first, last = snapshot.get_or_compute(
        ("blocks", kind, *conditions.values(), block, count, newest_first),
        lambda: _blocks(snapshot, kind, conditions, block, count, newest_first=newest_first),
    )
    return snapshot.rows(
        f"{kind}_activities_{'newest' if newest_first else 'oldest'}_first",
        row_type,
        **conditions,
        first_block=first,
        last_block=last,
        after_block=block,
        **within,
        row_count=count,
    )


def _blocks(
    snapshot: Snapshot, kind: str, conditions: dict[str, Any], after: int, count: int, *, newest_first: bool
) -> tuple[int, int]:
    """Return the first and last block of a page: the rest of block `after`, and the next `count` activities after it.

    The search uses growing spans of blocks, so that its time depends on the page and not on the whole history.
    """
    keys = {"subject_key": conditions["subject_key"], "tenant_id": conditions["tenant_id"]}
    query = f"{kind}_activity_extent"
    extent = snapshot.get_or_compute((query, *keys.values()), lambda: snapshot.rows(query, ActivityExtentRow, **keys))[
        0
    ]
    low, high = extent.first_block, extent.last_block
    low, high = (low, min(high, after - 1)) if newest_first else (max(low, after + 1), high)
    blocks_per_row = (extent.last_block - extent.first_block + 1) / max(extent.activity_count, 1)
    span = int(_FIRST_SPAN_ROWS * count * blocks_per_row) + 1
    reached, missing = after, count
    while low <= high and missing > 0:
        first, last = (max(low, high - span + 1), high) if newest_first else (low, min(high, low + span - 1))
        found = snapshot.rows(
            f"{kind}_activity_blocks",
            ActivityBlockRow,
            **conditions,
            first_block=first,
            last_block=last,
            order_sign=-1 if newest_first else 1,
            row_count=missing,
        )
        missing -= len(found)
        if found:
            reached = found[-1].block_number
        low, high = (low, first - 1) if newest_first else (last + 1, high)
        span *= _SPAN_GROWTH
    return (reached, after) if newest_first else (after, reached)


def _digest(snapshot: Snapshot, kind: str, conditions: dict[str, Any], one: Key, other: Key) -> int:
    """Return the digest of the activities between two keys in any order, both included."""
    query, names = f"{kind}_activity_digest", _KEYS[kind]
    bounds = {
        f"{bound}_{name}": part
        for bound, key in zip(("first", "last"), sorted((one, other)), strict=True)
        for name, part in zip(names, key, strict=True)
    }
    parameters = {**conditions, **bounds}

    def read() -> int:
        return snapshot.rows(query, ActivityDigestRow, **parameters)[0].digest

    return snapshot.get_or_compute((query, *parameters.values()), read)


def _named(labels: Labels, address: str | None) -> str | None:
    return None if address is None else labels[address].name


def _shown(present: Callable[[str], str], address: str | None) -> str | None:
    return None if address is None else present(address)
