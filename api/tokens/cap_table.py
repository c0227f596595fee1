"""Cap tables: the head and the holders at a moment, computed from what each holder has when they are read."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET, UnsetType

from api.engine.serving import Snapshot
from api.http.calls import Fetch, Fetched
from api.http.paging import Key
from api.schema import AsOfStatus, TrackingStatus
from api.subjects.moments import State, View, read_view, resolve_of_token
from api.subjects.names import Names
from api.subjects.resumable import cut
from api.tokens.holders import HolderSet, LabelColumns, Section, SortKey
from api.tokens.rows import HolderRow, SupplyRow
from api.tokens.schemas import Concentration, HoldersStatus, HolderType, Holding, Unattributed
from api.tokens.supplies import NOTHING, UNKNOWN, Supply, supply_row, to_supply
from api.values.explaining import BalanceRef, explain
from api.values.reading import Rate, rate_at, read_link, whole_tokens
from api.values.schemas import Explanation
from control.labels import NO_LABEL, Label
from control.networks.families import AddressCodec, codec_for
from control.subjects import SubjectRow, Window
from figures.cap_table import Summary as Figures
from figures.cap_table import held_by_rank, summarize


@dataclass(frozen=True, slots=True)
class Summary:
    """The head of a cap table: supply, holders and figures, each with why it is missing.

    `unattributed` is in whole tokens. `held_by_rank` has ranks, up to the last one, each with the sum of the balances
    up to it.
    """

    supply: Supply
    holder_count: int | None
    figures: Figures
    unattributed: str | None = None
    held_by_rank: Sequence[tuple[int, int]] = ()

    @property
    def holders_status(self) -> HoldersStatus:
        """`Complete` if all holders are known."""
        return self.figures.holders_status


_NOTHING = Summary(UNKNOWN, None, summarize([], None, "Unknown", opens_without_holders=False))
_BEFORE_CREATION = Summary(NOTHING, 0, summarize([], 0, "ZeroSupply", opens_without_holders=True), "0")


def read_summary(snapshot: Snapshot, view: View, state: State | None, status: AsOfStatus) -> Summary:
    """Return the head of a cap table at a moment; empty when nothing is collected, or it is of no fungible token."""
    if status == "BeforeCreation":
        return _BEFORE_CREATION
    if state is None or (state.is_current and (view.token is None or view.token.holder_count is None)):
        return _NOTHING
    held = HolderSet(snapshot, view, state)
    if state.is_current:
        subject, windows = view.subject, view.windows
        snapshot.warm(("cap-table", *view.keys.values()), lambda later: _read_newest(later, subject, windows))
    return snapshot.get_or_compute(("cap-table", *held.key), lambda: _summarize(held))


def _read_newest(snapshot: Snapshot, subject: SubjectRow, windows: Sequence[Window]) -> Summary:
    view = read_view(snapshot, subject, windows)
    return read_summary(snapshot, view, *resolve_of_token(snapshot, view, None))


def to_unattributed(summary: Summary) -> Unattributed:
    """Return the part of the supply that no seen holder has."""
    found = summary.figures
    raw = None if found.unattributed is None else str(found.unattributed)
    return Unattributed(
        quantity=summary.unattributed or raw,
        quantity_raw=raw,
        percentage=found.unattributed_percentage,
        status=found.unattributed_status,
    )


def to_concentration(summary: Summary) -> Concentration:
    """Return the concentration figures."""
    return Concentration(**asdict(summary.figures.concentration), status=summary.supply.status)


def holders(
    view: View, state: State | None, summary: Summary, names: Names, sort: str, *, explains: bool = False
) -> Fetch[Holding]:
    """Return the reader of the holders at a moment, with the values at its price.

    Args:
        view: the token.
        state: the moment; None gives no holders.
        summary: its head, for the supply.
        names: how the tenant calls holders.
        sort: 'rank' or 'wallet', descending with a leading '-'.
        explains: whether rows are explained.
    """

    def fetch(snapshot: Snapshot, after: Key | None, limit: int) -> Fetched[Holding]:
        if state is None:
            return Fetched([], None)
        rate = holder_rate(snapshot, view, state)
        rows = HolderSet(snapshot, view, state).page(_section(summary, rate, sort, after, limit + 1))
        return cut(
            rows,
            limit,
            lambda kept: to_holdings(snapshot, view, state, summary, rate, names, kept, explains=explains),
            lambda row: (row.rank, row.quantity_raw, row.holder_address),
        )

    return fetch


def holder_columns(view: View, state: State | None, summary: Summary, names: Names, sort: str) -> Fetch[Holding]:
    """Return the reader of the holders for a file, as columns; arguments as `holders`."""
    labels = holder_labels(view, names)

    def fetch(snapshot: Snapshot, after: Key | None, limit: int) -> Fetched[Holding]:
        if state is None:
            return Fetched([], None)
        rate = holder_rate(snapshot, view, state)
        section = _section(summary, rate, sort, after, limit)
        found = HolderSet(snapshot, view, state).columns(section, labels)
        last = (_last(found, "rank"), "", _last(found, "holder_address")) if found.num_rows == limit else None
        return Fetched(finish_columns(found, view, summary, rate), last)

    return fetch


def _section(summary: Summary, rate: Rate, sort: str, after: Key | None, limit: int) -> Section:
    return Section(
        "wallet" if sort.endswith("wallet") else "rank",
        limit,
        summary.supply.raw,
        rate.price,
        is_descending=sort.startswith("-"),
        after=None if after is None else SortKey(int(after[0]), str(after[2])),
    )


def _last(found: pa.Table, column: str) -> Any:
    return found[column][-1].as_py()


def finish_columns(found: pa.Table, view: View, summary: Summary, rate: Rate) -> pa.Table:
    """Return columns of holders with the statuses that all rows share, and the addresses that the marts do not show."""
    for name, status in (("percentage_status", summary.supply.figure_status), ("value_status", rate.status)):
        found = found.append_column(name, pa.repeat(status, found.num_rows))
    shown, stored = (found[name].combine_chunks() for name in ("wallet", "holder_address"))
    if not shown.null_count:
        return found
    present = codec_for(view.subject.family).present
    presented = pa.array([present(address) for address in stored.filter(shown.is_null()).to_pylist()])
    wallets = pc.replace_with_mask(shown, shown.is_null(), presented)
    return found.set_column(found.column_names.index("wallet"), "wallet", wallets)


def holder_rate(snapshot: Snapshot, view: View, state: State) -> Rate:
    """Return how the quantities of the holders at a moment are valued."""
    return rate_at(snapshot, view.subject, view.decimals, state.valued_at)


def to_holdings(
    snapshot: Snapshot,
    view: View,
    state: State,
    summary: Summary,
    rate: Rate,
    names: Names,
    rows: Sequence[HolderRow],
    *,
    explains: bool = False,
) -> list[Holding]:
    """Return the holders of a page, in its order; arguments as `holders`, and how their quantities are valued."""
    codec = codec_for(view.subject.family)
    labels = names.of([row.holder_address for row in rows])
    explained: Sequence[Explanation | UnsetType] = [UNSET] * len(rows)
    if explains:
        held = [BalanceRef(row.holder_address, state.first_block, last_block=state.block_number) for row in rows]
        link = read_link(snapshot, view.subject)
        moment = (link.pair_key, state.valued_at) if link.pair_key and state.valued_at else None
        explained = explain(snapshot, view, held, [moment] * len(rows))
    return [
        Holding(
            rank=row.rank,
            wallet=codec.present(row.holder_address),
            name=labels[row.holder_address].name,
            wallet_id=labels[row.holder_address].wallet_id,
            holder_type=_holder_type(codec, row.holder_address, labels[row.holder_address]),
            quantity=row.quantity,
            quantity_raw=row.quantity_raw,
            percentage=row.percentage,
            percentage_status=summary.supply.figure_status,
            value=row.value,
            value_status=rate.status,
            reconciliation=row.reconciliation,
            checked_block_number=row.checked_block_number,
            opened_by=row.opened_by,
            explanation=explanation,
        )
        for row, explanation in zip(rows, explained, strict=True)
    ]


def holder_labels(view: View, names: Names) -> LabelColumns:
    """Return the labels of the addresses that the tenant or the network's family knows, by column."""
    codec = codec_for(view.subject.family)
    known = names.all()
    addresses = sorted(known.keys() | codec.burns)
    labels = [known.get(address, NO_LABEL) for address in addresses]
    wallet_ids = [label.wallet_id for label in labels]
    tracked = names.tracked({wallet_id for wallet_id in wallet_ids if wallet_id})
    return {
        "labelled_addresses": addresses,
        "names": [label.name for label in labels],
        "wallet_ids": wallet_ids,
        "holder_types": [_holder_type(codec, *one) for one in zip(addresses, labels, strict=True)],
        "wallet_tracking_statuses": [tracking_of(wallet_id, tracked) for wallet_id in wallet_ids],
    }


def tracking_of(wallet_id: str | None, tracked: Collection[str]) -> TrackingStatus | None:
    """Return whether the wallet of a holder is tracked; None if the tenant has no such wallet."""
    if wallet_id is None:
        return None
    return "enabled" if wallet_id in tracked else "disabled"


def _holder_type(codec: AddressCodec, address: str, label: Label) -> HolderType | None:
    if address in codec.burns:
        return "Burn"
    if label.is_token:
        return "Token"
    return "Wallet" if label.wallet_id else None


def _summarize(held: HolderSet) -> Summary:
    view, state = held.view, held.state
    row = supply_row(held.snapshot, view, state.first_block, state.block_number)
    supply, quantities = to_supply(row), held.quantities()
    found = summarize(
        quantities,
        supply.base_units,
        supply.status,
        opens_without_holders=_opens_without_holders(held, row),
    )
    return Summary(
        supply=supply,
        holder_count=len(quantities),
        figures=found,
        unattributed=None if found.unattributed is None else whole_tokens(str(found.unattributed), view.decimals),
        held_by_rank=held_by_rank(quantities),
    )


def _opens_without_holders(held: HolderSet, supply: SupplyRow | None) -> bool:
    """Say whether nobody held anything before the range: it begins with the token or chain, or had no supply."""
    first = held.state.first_block
    if first <= 1 or (supply is not None and supply.opened_by == "Creation"):
        return True
    before = supply_row(held.snapshot, held.view, first, first - 1)
    return before is not None and before.total_supply_raw == "0" and before.opened_by == "Observed"
