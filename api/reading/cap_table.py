"""Cap tables: the head and the holders, now from the marts, at an earlier moment from the balances known then."""

from api.calls import Fetch, Fetched
from api.paging import Key
from api.reading.concentration import concentrate
from api.reading.moments import State, View, is_gap_free
from api.reading.pages import cut
from api.reading.values import value_status
from api.rows import BalanceRow, CapTableSummaryRow, HolderRow, SupplyChangeRow, SupplyRow
from api.schemas.tokens import Concentration, Holding, SupplyStatus, Unattributed
from api.serving import Snapshot
from control.networks.families import codec_for

_NOTHING = CapTableSummaryRow(
    total_supply_raw=None,
    total_supply=None,
    supply_status="Unknown",
    holder_count=None,
    unattributed_raw=None,
    unattributed=None,
    unattributed_percentage=None,
    top10_percentage=None,
    hhi=None,
    gini=None,
    nakamoto=None,
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
        status=summary.supply_status,
    )


def to_concentration(summary: CapTableSummaryRow) -> Concentration:
    """Return the concentration figures."""
    return Concentration(
        top10=summary.top10_percentage,
        hhi=summary.hhi,
        gini=summary.gini,
        nakamoto=summary.nakamoto,
        status=summary.supply_status,
    )


def holders(view: View, state: State | None, summary: CapTableSummaryRow, sort: str) -> Fetch[Holding]:
    """Return the reader of the holders at a moment.

    Args:
        view: the token.
        state: the moment; None gives no holders.
        summary: its head, for the supply.
        sort: 'rank' or 'wallet', descending with a leading '-'.
    """
    present = codec_for(view.subject.family).present
    is_by_wallet, direction = sort.endswith("wallet"), -1 if sort.startswith("-") else 1

    def fetch(snapshot: Snapshot, after: Key | None, limit: int) -> Fetched[Holding]:
        if state is None:
            return Fetched([], None)
        rows = read(snapshot, state, int(after[0]) if after else None, limit + 1)
        return cut(rows, limit, to_item, lambda row: (row.position,))

    def read(snapshot: Snapshot, state: State, after: int | None, count: int) -> list[HolderRow]:
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
            "cap_table_as_of",
            HolderRow,
            **keys,
            first_block=state.first_block,
            block_number=state.block_number,
            total_supply_raw=summary.total_supply_raw,
            is_by_wallet=is_by_wallet,
            direction=direction,
            after_position=after_position,
            row_count=count,
        )

    def to_item(row: HolderRow) -> Holding:
        return Holding(
            rank=row.rank,
            wallet=present(row.holder_address),
            quantity=row.quantity or row.quantity_raw,
            quantity_raw=row.quantity_raw,
            percentage=row.percentage,
            percentage_status=summary.supply_status,
            value=None,
            value_status=value_status(row.quantity),
            reconciliation=row.reconciliation,
        )

    return fetch


def _current_summary(snapshot: Snapshot, view: View) -> CapTableSummaryRow:
    found = snapshot.row(
        "cap_table_summary",
        CapTableSummaryRow,
        subject_key=view.subject.subject_key,
        tenant_id=view.subject.tenant_id,
    )
    return found or _NOTHING


def _past_summary(snapshot: Snapshot, view: View, state: State) -> CapTableSummaryRow:
    keys = {"subject_key": view.subject.subject_key, "tenant_id": view.subject.tenant_id}
    rows = snapshot.rows(
        "cap_table_as_of_balances",
        BalanceRow,
        **keys,
        first_block=state.first_block,
        block_number=state.block_number,
    )
    balances = [int(row.balance_raw) for row in rows]
    supply = _supply_at(snapshot, view, state)
    status: SupplyStatus = "Unknown" if supply is None else "Observed" if supply else "ZeroSupply"
    shown = snapshot.row(
        "supply_shown",
        SupplyRow,
        total_supply_raw=None if supply is None else str(supply),
        unattributed_raw=None if supply is None else str(supply - sum(balances)),
        decimals=view.token.decimals if view.token else None,
    )
    figures = concentrate(balances, supply)
    return CapTableSummaryRow(
        total_supply_raw=None if supply is None else str(supply),
        total_supply=shown.total_supply if shown else None,
        supply_status=status,
        holder_count=len(balances),
        unattributed_raw=None if supply is None else str(supply - sum(balances)),
        unattributed=shown.unattributed if shown else None,
        unattributed_percentage=shown.unattributed_percentage if shown else None,
        top10_percentage=figures.top10,
        hhi=figures.hhi,
        gini=figures.gini,
        nakamoto=figures.nakamoto,
    )


def _supply_at(snapshot: Snapshot, view: View, state: State) -> int | None:
    """Return the newest supply moved back by what was minted and burnt since; None across a gap."""
    facts = view.token
    if facts is None or facts.total_supply_raw is None or facts.as_of_block_number is None:
        return None
    if not is_gap_free(view, state.block_number, facts.as_of_block_number):
        return None
    moved = snapshot.row(
        "supply_changes_after",
        SupplyChangeRow,
        subject_key=view.subject.subject_key,
        tenant_id=view.subject.tenant_id,
        block_number=state.block_number,
        last_block=facts.as_of_block_number,
    )
    if moved is None:
        return None
    return int(facts.total_supply_raw) - int(moved.minted_raw) + int(moved.burnt_raw)
