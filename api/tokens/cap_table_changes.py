"""Differences between the cap tables of two moments."""

from dataclasses import dataclass

from api.engine.serving import Snapshot
from api.errors import invalid_parameter
from api.http.calls import Fetched
from api.http.paging import Key
from api.http.parameters import Moment, TimeRange
from api.schema import AsOfStatus, Coverage
from api.subjects.moments import State, View, resolve_covered, resolve_of_token, to_coverage, to_moment_coverage
from api.subjects.names import Names
from api.tokens.rows import HolderChangeRow
from api.tokens.schemas import CapTableChangeTotals, HolderChange, HolderChangeKind, HolderChangeOrder, QuantityStatus
from api.tokens.supplies import NOTHING, supply_at
from api.values.reading import whole_tokens
from control.networks.families import codec_for

_BEFORE_ALL = -(2**62)
_NO_BLOCK = -1


@dataclass(frozen=True, slots=True)
class Changes:
    """Two moments of a token, with conditions and order of holders; None means no condition.

    A moment before the token's creation has no state. `search` is a part of the address, in lower case. `named` are
    further matching addresses.
    """

    view: View
    names: Names
    before: State | None
    after: State | None
    change: HolderChangeKind | None = None
    sort: HolderChangeOrder = "-difference"
    search: str | None = None
    named: tuple[str, ...] = ()

    @property
    def coverage(self) -> Coverage:
        """Coverage of the time between the moments."""
        if self.after is None:
            return to_moment_coverage(self.view, None, "BeforeCreation")
        return to_coverage(self.view, self.after, TimeRange(None, None), since=self.before)

    @property
    def statuses(self) -> tuple[AsOfStatus, AsOfStatus]:
        """Status of both moments; it says why a moment has no block."""
        return _status_of(self.before), _status_of(self.after)


@dataclass(frozen=True, slots=True)
class ChangesPage:
    """Totals of both cap tables, the number of matching changes, and a page of them."""

    totals: CapTableChangeTotals
    matching_count: int
    fetched: Fetched[HolderChange]


def resolve_both(
    snapshot: Snapshot, view: View, first: Moment, last: Moment | None
) -> tuple[State | None, State | None]:
    """Return the states at two moments; None before the token's creation.

    Raises:
        ApiError: 409, as for `resolve`; 422, `to` is earlier than `from`.
    """
    before, _ = resolve_of_token(snapshot, view, first)
    after, status = resolve_of_token(snapshot, view, last)
    if status == "NothingCovered":
        # The first moment is before the creation and nothing is covered yet, so raise the error of the first moment.
        after = resolve_covered(snapshot, view, first)
    if before is not None and (after is None or before.block_number > after.block_number):
        place = "before the token's creation" if after is None else f"block {after.block_number}"
        detail = f"to is {place}, which is before block {before.block_number} of from"
        raise invalid_parameter("to", "earlier-than-from", detail)
    return before, after


def read_page(snapshot: Snapshot, changes: Changes, after: Key | None, limit: int, skipped: int = 0) -> ChangesPage:
    """Return a page of the changed holders after a key, without the first `skipped` of them."""
    before_state, after_state, decimals = changes.before, changes.after, changes.view.decimals
    moments = {
        **changes.view.keys,
        "before_first_block": before_state.first_block if before_state else _NO_BLOCK,
        "before_block": before_state.block_number if before_state else _NO_BLOCK,
        "after_first_block": after_state.first_block if after_state else _NO_BLOCK,
        "after_block": after_state.block_number if after_state else _NO_BLOCK,
        "is_before_creation": before_state is None,
    }
    supply_before, supply_after = (
        supply_at(snapshot, changes.view, state) if state else NOTHING for state in (before_state, after_state)
    )
    rows = snapshot.rows_over(
        {"balances_at_both": snapshot.table(("balances", *moments.values()), {}, "cap_table_balances", **moments)},
        "cap_table_changes",
        HolderChangeRow,
        change=changes.change,
        search=changes.search,
        named=list(changes.named),
        is_by_wallet=changes.sort.endswith("wallet"),
        # The largest difference has the first rank.
        direction=-1 if changes.sort in ("difference", "-wallet") else 1,
        after_position=_BEFORE_ALL if after is None else int(after[0]),
        row_count=limit + 1,
        skipped=skipped,
        supply_before_raw=supply_before.raw,
        supply_after_raw=supply_after.raw,
    )
    head = rows[0]
    totals = CapTableChangeTotals(
        holders_before=head.holders_before,
        holders_after=head.holders_after,
        new=head.new_count,
        gone=head.gone_count,
        changed=head.changed_count,
        supply_before=supply_before.shown,
        supply_before_raw=supply_before.raw,
        supply_before_status=supply_before.status,
        supply_after=supply_after.shown,
        supply_after_raw=supply_after.raw,
        supply_after_status=supply_after.status,
    )
    present = codec_for(changes.view.subject.family).present
    found = [
        (row.position, row.holder_address, row.change, row)
        for row in rows
        if row.position is not None and row.holder_address is not None and row.change is not None
    ]
    labels = changes.names.of([holder for _, holder, _, _ in found[:limit]])
    items = [
        HolderChange(
            wallet=present(holder),
            name=labels[holder].name,
            change=change,
            quantity_before=whole_tokens(row.before_raw, decimals) or row.before_raw,
            quantity_before_raw=row.before_raw,
            quantity_after=whole_tokens(row.after_raw, decimals) or row.after_raw,
            quantity_after_raw=row.after_raw,
            difference=whole_tokens(row.difference_raw, decimals) or row.difference_raw,
            difference_raw=row.difference_raw,
            quantity_status=_quantity_status(row),
            percentage_before=row.percentage_before,
            percentage_before_status="Unknown" if row.before_raw is None else supply_before.figure_status,
            percentage_after=row.percentage_after,
            percentage_after_status="Unknown" if row.after_raw is None else supply_after.figure_status,
        )
        for _, holder, change, row in found[:limit]
    ]
    fetched = Fetched(items, (found[limit - 1][0],) if len(found) > limit else None)
    return ChangesPage(totals, head.matching_count, fetched)


def _status_of(state: State | None) -> AsOfStatus:
    return "BeforeCreation" if state is None else "Covered"


def _quantity_status(row: HolderChangeRow) -> QuantityStatus:
    if row.before_raw is None:
        return "UnknownBefore"
    return "UnknownAfter" if row.after_raw is None else "Known"
