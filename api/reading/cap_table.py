"""Cap tables: the head and the holders, now from the marts, at an earlier moment from the balances known then."""

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from api.calls import Fetch, Fetched
from api.paging import Key
from api.reading.concentration import concentrate
from api.reading.explain import Held, explain
from api.reading.moments import State, View
from api.reading.pages import cut
from api.reading.values import read_link, worth
from api.rows import BalanceAsOfRow, BalanceRow, CapTableSummaryRow, HolderRow, SupplyRow, UnattributedRow
from api.schemas.tokens import Concentration, Holding, SupplyStatus, Unattributed
from api.schemas.values import Explanation
from api.serving import Snapshot
from control.networks.families import codec_for

_NOTHING = CapTableSummaryRow(
    total_supply_raw=None,
    total_supply=None,
    supply_status="Unknown",
    holder_count=None,
    holders_status="HoldersUnknown",
    unattributed_raw=None,
    unattributed=None,
    unattributed_percentage=None,
    unattributed_status="Unknown",
    top10_percentage=None,
    top10_status="Unknown",
    hhi=None,
    hhi_status="Unknown",
    gini=None,
    gini_status="Unknown",
    nakamoto=None,
    nakamoto_status="Unknown",
)


def read_summary(snapshot: Snapshot, view: View, state: State | None) -> CapTableSummaryRow:
    """Return the head of a cap table at a moment; empty when nothing is collected."""
    if state is None:
        return _NOTHING
    subject_key = view.subject.subject_key
    if state.is_current:
        return snapshot.remember(("cap-table", subject_key), lambda: _current_summary(snapshot, view))
    key = ("cap-table", subject_key, state.block_number, state.first_block)
    return snapshot.remember(key, lambda: _past_summary(snapshot, view, state))


def to_unattributed(summary: CapTableSummaryRow) -> Unattributed:
    """Return the part of the supply that no seen holder has."""
    return Unattributed(
        quantity=summary.unattributed or summary.unattributed_raw,
        quantity_raw=summary.unattributed_raw,
        percentage=summary.unattributed_percentage,
        status=summary.unattributed_status,
    )


def to_concentration(summary: CapTableSummaryRow) -> Concentration:
    """Return the concentration figures."""
    return Concentration(
        top10=summary.top10_percentage,
        top10_status=summary.top10_status,
        hhi=summary.hhi,
        hhi_status=summary.hhi_status,
        gini=summary.gini,
        gini_status=summary.gini_status,
        nakamoto=summary.nakamoto,
        nakamoto_status=summary.nakamoto_status,
        status=summary.supply_status,
    )


def holders(
    view: View, state: State | None, summary: CapTableSummaryRow, sort: str, *, explains: bool = False
) -> Fetch[Holding]:
    """Return the reader of the holders at a moment, with the values at its price.

    Args:
        view: the token.
        state: the moment; None gives no holders.
        summary: its head, for the supply.
        sort: 'rank' or 'wallet', descending with a leading '-'.
        explains: whether rows are explained.
    """
    is_by_wallet, direction = sort.endswith("wallet"), -1 if sort.startswith("-") else 1

    def fetch(snapshot: Snapshot, after: Key | None, limit: int) -> Fetched[Holding]:
        if state is None:
            return Fetched([], None)
        rows = read(snapshot, state, int(after[0]) if after else None, limit + 1)
        return cut(
            rows,
            limit,
            lambda kept: to_holdings(snapshot, view, state, summary, kept, explains=explains),
            lambda row: (row.position,),
        )

    def read(snapshot: Snapshot, state: State, after: int | None, count: int) -> Sequence[HolderRow | BalanceAsOfRow]:
        keys = {"subject_key": view.subject.subject_key, "tenant_id": view.subject.tenant_id}
        if state.is_current and not is_by_wallet:
            if direction > 0:
                first = (after or 0) + 1
                last = first + count - 1
            else:
                last = (summary.holder_count or 0) if after is None else after - 1
                first = last - count + 1
            rows = snapshot.rows("cap_table_by_rank", HolderRow, **keys, first_rank=first, last_rank=last)
            return rows[::direction]
        after_position = -(2**62) if after is None else after
        if state.is_current:
            return snapshot.rows(
                "cap_table_by_wallet",
                HolderRow,
                **keys,
                direction=direction,
                after_position=after_position,
                row_count=count,
            )
        return snapshot.rows(
            "balances_as_of",
            BalanceAsOfRow,
            **keys,
            first_block=state.first_block,
            block_number=state.block_number,
            total_supply_raw=summary.total_supply_raw,
            is_by_address=is_by_wallet,
            direction=direction,
            after_position=after_position,
            row_count=count,
        )

    return fetch


def to_holdings(
    snapshot: Snapshot,
    view: View,
    state: State,
    summary: CapTableSummaryRow,
    rows: Sequence[HolderRow | BalanceAsOfRow],
    *,
    explains: bool = False,
) -> list[Holding]:
    """Return the holders of a page, in its order, with their values; arguments as `holders`."""
    present = codec_for(view.subject.family).present
    # Valued after the page is cut: of a hundred thousand holders, fifty.
    link = read_link(snapshot, view.subject)
    values = worth(snapshot, view.subject.tenant_id, [(row.quantity, link, state.valued_at) for row in rows])
    explained: Sequence[Explanation | UnsetType] = [UNSET] * len(rows)
    if explains:
        held = [Held(row.holder_address, state.first_block, last_block=state.block_number) for row in rows]
        moment = (link.pair_key, state.valued_at) if link.pair_key and state.valued_at else None
        explained = explain(snapshot, view, held, [moment] * len(rows))
    return [
        Holding(
            rank=row.rank,
            wallet=present(row.holder_address),
            quantity=row.quantity or row.quantity_raw,
            quantity_raw=row.quantity_raw,
            percentage=row.percentage,
            percentage_status=summary.supply_status,
            value=value.value,
            value_status=value.status,
            reconciliation=row.reconciliation,
            checked_block_number=row.checked_block_number,
            opened_by=row.opened_by,
            explanation=explanation,
        )
        for row, value, explanation in zip(rows, values, explained, strict=True)
    ]


def _current_summary(snapshot: Snapshot, view: View) -> CapTableSummaryRow:
    found = snapshot.row(
        "cap_table_summary",
        CapTableSummaryRow,
        subject_key=view.subject.subject_key,
        tenant_id=view.subject.tenant_id,
    )
    return found or _NOTHING


def _past_summary(snapshot: Snapshot, view: View, state: State) -> CapTableSummaryRow:
    moment = {
        "subject_key": view.subject.subject_key,
        "tenant_id": view.subject.tenant_id,
        "first_block": state.first_block,
        "block_number": state.block_number,
    }
    balances = [int(row.balance_raw) for row in snapshot.rows("cap_table_as_of_balances", BalanceRow, **moment)]
    found = snapshot.row("supply_as_of", SupplyRow, **moment)
    supply = None if found is None else int(found.total_supply_raw)
    rest = None if supply is None else supply - sum(balances)
    unattributed_raw = None if rest is None else str(rest)
    supply_status: SupplyStatus = "Unknown" if supply is None else "Observed" if supply else "ZeroSupply"
    shown = snapshot.row(
        "unattributed_shown",
        UnattributedRow,
        total_supply_raw=found.total_supply_raw if found else None,
        unattributed_raw=unattributed_raw,
        decimals=view.token.decimals if view.token else None,
    )
    figures = concentrate(balances, supply)
    return CapTableSummaryRow(
        total_supply_raw=found.total_supply_raw if found else None,
        total_supply=found.total_supply if found else None,
        supply_status=supply_status,
        holder_count=len(balances),
        holders_status="Complete" if rest == 0 and _is_from_nothing(snapshot, view, state, found) else "HoldersUnknown",
        unattributed_raw=unattributed_raw,
        unattributed=shown.unattributed if shown else None,
        unattributed_percentage=shown.unattributed_percentage if shown else None,
        unattributed_status="Negative" if rest is not None and rest < 0 else supply_status,
        top10_percentage=figures.top10,
        top10_status=figures.top10_status,
        hhi=figures.hhi,
        hhi_status=figures.hhi_status,
        gini=figures.gini,
        gini_status=figures.gini_status,
        nakamoto=figures.nakamoto,
        nakamoto_status=figures.nakamoto_status,
    )


def _is_from_nothing(snapshot: Snapshot, view: View, state: State, supply: SupplyRow | None) -> bool:
    """Say whether nobody held anything before the range: it begins with the token or chain, or the supply was zero."""
    if state.first_block <= 1 or (supply is not None and supply.opened_by == "Creation"):
        return True
    before = snapshot.row(
        "supply_as_of",
        SupplyRow,
        subject_key=view.subject.subject_key,
        tenant_id=view.subject.tenant_id,
        first_block=state.first_block,
        block_number=state.first_block - 1,
    )
    return before is not None and before.total_supply_raw == "0"
