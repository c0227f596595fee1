"""Rows of a cap table report: queries search, filter and sort them; each gets its name and its change in 30 days."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import pyarrow.compute as pc
from msgspec.structs import asdict

from api.engine.serving import Snapshot
from api.http.calls import Fetched
from api.http.paging import Key
from api.http.parameters import INSTANT
from api.reports.rows import CountRow
from api.reports.schemas.report_data import HolderReportSort, HoldingChangeStatus, ReportHolding
from api.schema import AsOfStatus, Reconciliation
from api.subjects.moments import State, View, state_before
from api.subjects.names import Names
from api.tokens.cap_table import (
    Summary,
    finish_columns,
    holder_rate,
    read_summary,
    to_holdings,
    tracking_of,
)
from api.tokens.holders import HolderFilter, HolderKey, HolderSet, LabelColumns, Section, SortKey
from api.tokens.rows import HolderRow

_SPAN = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class HolderFilters:
    """Order and conditions of rows; None means no condition. `named`: the addresses with a name that contains `q`."""

    sort: HolderReportSort = "rank"
    q: str | None = None
    named: tuple[str, ...] = ()
    reconciliation: Reconciliation | None = None

    @property
    def key(self) -> HolderKey:
        """The sort key of rows. Quantity, share and value sort by rank; the largest has the first rank."""
        match self.sort.removeprefix("-"):
            case "wallet":
                return "wallet"
            case "reconciliation":
                return "reconciliation"
            case _:
                return "rank"

    @property
    def is_descending(self) -> bool:
        """True if sort keys are in descending order; a descending quantity is an ascending rank."""
        return self.sort.startswith("-") != (self.sort.removeprefix("-") in ("quantity", "percentage", "value"))

    @property
    def matching(self) -> HolderFilter:
        """The filter of holders, with the search text in lower case like stored addresses."""
        return HolderFilter(None if self.q is None else self.q.lower(), self.named, self.reconciliation)


class Holders:
    """The holders of a token at a moment in one version. If `state` is None there are none, and `status` says why."""

    def __init__(self, snapshot: Snapshot, view: View, state: State | None, status: AsOfStatus, names: Names) -> None:
        self.snapshot = snapshot
        self.view = view
        self.state = state
        self.status = status
        self.names = names
        self.summary: Summary = read_summary(snapshot, view, state, status)

    def count(self, filters: HolderFilters) -> int:
        """Return the number of matching holders."""
        if self.state is None:
            return 0
        if filters.matching.is_open:
            return self.summary.holder_count or 0
        return self._matching(self.state, filters).query("matching_holder_count", CountRow)[0].row_count

    def page(self, filters: HolderFilters, limit: int, offset: int) -> list[ReportHolding]:
        """Return the rows of a page."""
        if self.state is None:
            return []
        rows = self.rows(filters, limit, offset)
        rate = holder_rate(self.snapshot, self.view, self.state)
        held = to_holdings(self.snapshot, self.view, self.state, self.summary, rate, self.names, rows)
        tracked = self.names.tracked({holding.wallet_id for holding in held if holding.wallet_id})
        return [
            ReportHolding(
                **asdict(holding),
                change30d=row.change,
                change30d_status=self._unknown_change(self.state) if row.change is None else "Known",
                wallet_tracking_status=tracking_of(holding.wallet_id, tracked),
            )
            for row, holding in zip(rows, held, strict=True)
        ]

    def rows(self, filters: HolderFilters, limit: int, offset: int = 0) -> Sequence[HolderRow]:
        """Return the holders of a page as rows of the marts."""
        if self.state is None:
            return []
        return self._matching(self.state, filters).page(self._section(self.state, filters, limit, offset))

    def on(self, snapshot: Snapshot) -> "Holders":
        """Return the same holders on another snapshot of the same version."""
        return Holders(snapshot, self.view, self.state, self.status, self.names)

    def fetch(
        self, filters: HolderFilters, labels: LabelColumns, limit: int, after: Key | None
    ) -> Fetched[ReportHolding]:
        """Return one batch of all rows for a file, as columns; `labels` as `holder_labels`."""
        state = self.state
        if state is None:
            return Fetched([], None)
        found = self._matching(state, filters).columns(self._section(state, filters, limit, after=after), labels)
        change = found["change"]
        status = pc.if_else(pc.is_null(change), self._unknown_change(state), "Known")
        shown = found.append_column("change30d", change).append_column("change30d_status", status)
        last = None
        if found.num_rows == limit:
            key = {"wallet": "holder_address", "reconciliation": "reconciliation", "rank": "rank"}[filters.key]
            last = (found["rank"][-1].as_py(), str(found[key][-1].as_py()))
        rate = holder_rate(self.snapshot, self.view, state)
        return Fetched(finish_columns(shown, self.view, self.summary, rate), last)

    def _section(
        self, state: State, filters: HolderFilters, limit: int, offset: int = 0, after: Key | None = None
    ) -> Section:
        return Section(
            filters.key,
            limit,
            self.summary.supply.raw,
            holder_rate(self.snapshot, self.view, state).price,
            is_descending=filters.is_descending,
            after=SortKey(int(after[0]), str(after[1])) if after else None,
            skipped=offset,
            then=self._state_before(state),
        )

    def _matching(self, state: State, filters: HolderFilters) -> HolderSet:
        return HolderSet(self.snapshot, self.view, state, filters.matching)

    def _unknown_change(self, state: State) -> HoldingChangeStatus:
        """Return why a change of 30 days is null."""
        return "NotCovered" if self._state_before(state) is None else "UnknownBefore"

    def _state_before(self, state: State) -> State | None:
        if state.valued_at is None:
            return None
        end = state.valued_at - _SPAN + INSTANT
        key = ("state-before", *self.view.keys.values(), end)
        return self.snapshot.get_or_compute(key, lambda: state_before(self.snapshot, self.view, end))
