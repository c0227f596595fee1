"""Rows of a wallet activity report: queries search, filter and sort them; counterparties get the tenant's names."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from api.activities.reading import (
    FIRST_TIME,
    LAST_TIME,
    metadata_statuses,
    names_of_counterparties,
    to_wallet_activity,
)
from api.activities.rows import ActivityValueRow
from api.activities.schemas import Direction, WalletActivity, WalletActivityType
from api.engine.rows import as_naive
from api.engine.serving import Snapshot
from api.engine.tables import Table
from api.http.calls import Fetched
from api.http.paging import Key
from api.http.parameters import TimeRange
from api.reports.rows import CountRow, FoldedFeeRow, ValuedActivityRow
from api.reports.schemas.report_data import ActivityReportSort, FoldedFee
from api.subjects.moments import View
from api.subjects.names import Names
from api.values.reading import read_links

_LAST_TEXT = "~"  # sorts after every text and number, so that rows without a sort key come last in both directions


@dataclass(frozen=True, slots=True)
class ActivityFilters:
    """Order and conditions of rows; None means no condition. `named`: the addresses with a name that contains `q`."""

    times: TimeRange
    sort: ActivityReportSort = "-date"
    q: str | None = None
    named: tuple[str, ...] = ()
    activity_type: WalletActivityType | None = None
    token_address: str | None = None
    direction: Direction | None = None
    folds_fees: bool = False
    """Omit fees that the row of another activity of the same transaction shows. No effect on a filter for fees."""

    @property
    def conditions(self) -> dict[str, Any]:
        """Parameters of the queries; stored addresses and hashes are in lower case."""
        return {
            "from_time": as_naive(self.times.start or FIRST_TIME),
            "to_time": as_naive(self.times.end or LAST_TIME),
            "activity_type": self.activity_type,
            "direction": self.direction,
            "token_address": self.token_address,
            "search": None if self.q is None else self.q.lower(),
            "named": list(self.named),
            "is_folded": self.folds_fees and self.activity_type != "Fee",
        }


class Activities:
    """The activities of a wallet in one version."""

    def __init__(self, snapshot: Snapshot, view: View, names: Names) -> None:
        self.snapshot = snapshot
        self.view = view
        self.names = names

    def count(self, filters: ActivityFilters) -> int:
        """Return the number of matching activities."""
        ordered = {"ordered": self._ordered(filters)}
        return self.snapshot.rows_over(ordered, "report_activity_count", CountRow)[0].row_count

    def page(self, filters: ActivityFilters, limit: int, offset: int) -> list[WalletActivity]:
        """Return the rows of a page."""
        return self._to_items(self._read(filters, limit, offset))

    def fees(self, page: Sequence[WalletActivity]) -> list[FoldedFee]:
        """Return the omitted fees that the rows of a page show."""
        hashes = {row.transaction_hash for row in page if row.transaction_hash is not None}
        if not hashes:
            return []
        rows = self.snapshot.rows_over(
            {"places": places_of(self.snapshot, self.view)},
            "report_folded_fees",
            FoldedFeeRow,
            **self.view.keys,
            transactions=sorted(hashes),
            activities=[row.id for row in page],
            first_block=min(row.block_number for row in page),
            last_block=max(row.block_number for row in page),
        )
        items = self._to_items(rows)
        return [FoldedFee(activity_id=row.shown_with, fee=item) for row, item in zip(rows, items, strict=True)]

    def on(self, snapshot: Snapshot) -> "Activities":
        """Return the same activities on another snapshot of the same version."""
        return Activities(snapshot, self.view, self.names)

    def fetch(self, filters: ActivityFilters, limit: int, after: Key | None) -> Fetched[WalletActivity]:
        """Return one batch of all rows; every batch takes the same time."""
        position = int(after[0]) if after else 0
        rows = self._read(filters, limit, position)
        return Fetched(self._to_items(rows), (position + limit,) if len(rows) == limit else None)

    def _read(self, filters: ActivityFilters, limit: int, skipped: int) -> Sequence[ValuedActivityRow]:
        return self.snapshot.rows_over(
            {"ordered": self._ordered(filters)},
            "report_activities",
            ValuedActivityRow,
            first_position=skipped + 1,
            last_position=skipped + limit,
        )

    def _ordered(self, filters: ActivityFilters) -> Table:
        """Return the table of the matching activities' positions, in their order."""
        places = places_of(self.snapshot, self.view)
        is_descending = filters.sort.startswith("-")
        return self.snapshot.table(
            ("report-order", *self.view.keys.values(), filters, places.name),
            {"places": places},
            f"report_order_{'descending' if is_descending else 'ascending'}",
            **self.view.keys,
            **filters.conditions,
            sort=filters.sort.removeprefix("-"),
            key_of_null="" if is_descending else _LAST_TEXT,
        )

    def _to_items(self, rows: Sequence[ValuedActivityRow]) -> list[WalletActivity]:
        present = self.view.subject.present
        labels = names_of_counterparties(self.names, rows)
        statuses = metadata_statuses(self.snapshot, self.view, {row.token_address for row in rows})
        links = read_links(self.snapshot, self.view)
        items: list[WalletActivity] = []
        for row in rows:
            value = None
            if row.value_status is not None:
                value = ActivityValueRow(row.activity_id, row.pair_key, row.price, row.value, row.value_status)
            items.append(to_wallet_activity(present, row, statuses, labels, links.of(row.token_address), value))
        return items


def places_of(snapshot: Snapshot, view: View) -> Table:
    """Return the table of all activities of a wallet: their positions, and their values by the links in force."""
    links = read_links(snapshot, view)
    changes = {"unlinked": list(links.unlinked), "relinked": list(links.relinked)}
    key = ("report-places", *view.keys.values(), links.unlinked, links.relinked)
    return snapshot.table(key, {}, "report_places", **view.keys, **changes)
