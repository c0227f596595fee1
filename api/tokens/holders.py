"""The holders of a token at a moment: now from the marts, earlier from the balances known then. One reading of both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import pyarrow as pa

from api.engine.rows import Row
from api.engine.serving import Snapshot
from api.engine.tables import Table
from api.schema import Reconciliation
from api.subjects.moments import State, View
from api.tokens.rows import HolderCountRow, HolderRow, QuantitiesRow
from figures.cap_table import parse_balances

RowT = TypeVar("RowT", bound=Row)


HolderKey = Literal["rank", "wallet", "reconciliation"]
LabelColumns = Mapping[str, Sequence[str | None]]
"""Labels of some addresses, by parameter of the query that joins them."""

_LAST_RANK = 2**62


@dataclass(frozen=True, slots=True)
class SortKey:
    """The last holder of a page, and what it has of the key that pages are sorted by; '' for 'rank'."""

    rank: int
    key: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Some holders by a key, equal ones by rank, with the figures that answers show.

    Args:
        key: what by.
        limit: maximum number of rows.
        supply_raw: total supply in base units, for percentages; None when it is unknown.
        price: of a whole token; None for no values.
        is_descending: backwards.
        after: only those behind it.
        skipped: how many are left out.
        then: an earlier moment; rows have the change since it, too.
    """

    key: HolderKey
    limit: int
    supply_raw: str | None
    price: str | None
    is_descending: bool = False
    after: SortKey | None = None
    skipped: int = 0
    then: State | None = None


@dataclass(frozen=True, slots=True)
class HolderFilter:
    """Which holders; None is no condition.

    `search` is part of the address, in lower case; `named` are addresses that match all the same.
    """

    search: str | None = None
    named: tuple[str, ...] = ()
    reconciliation: Reconciliation | None = None

    @property
    def is_open(self) -> bool:
        """Whether every holder matches."""
        return self.search is None and self.reconciliation is None


NO_FILTER = HolderFilter()


@dataclass(frozen=True, slots=True)
class HolderSet:
    """The holders of a token at a moment, or those of them that match, in one version."""

    snapshot: Snapshot
    view: View
    state: State
    matching: HolderFilter = NO_FILTER

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells it from others of the version."""
        return (*self.view.keys.values(), self.state.block_number, self.state.first_block)

    def table(self) -> Table:
        """Return them by rank, as a table."""
        if not self.matching.is_open:
            everybody = {"holders": replace(self, matching=NO_FILTER).table()}
            conditions = {
                "search": self.matching.search,
                "named": list(self.matching.named),
                "reconciliation": self.matching.reconciliation,
            }
            return self.snapshot.table(("holders", *self.key, self.matching), everybody, "holder_matches", **conditions)
        if self.state.is_current:
            return self.snapshot.table(("holders", *self.key), {}, "holders_now", **self.view.keys)
        moment = {"first_block": self.state.first_block, "block_number": self.state.block_number}
        return self.snapshot.table(("holders", *self.key), {}, "holders_as_of", **self.view.keys, **moment)

    def before(self, then: State) -> Table:
        """Return what they had at an earlier moment, by rank, as a table; who had the same may be missing."""
        return self.snapshot.table(
            ("before", *self.key, then.block_number, then.first_block),
            {"holders": self.table()},
            "holders_before",
            **self.view.keys,
            first_block=self.state.first_block,
            block_number=self.state.block_number,
            then_first_block=then.first_block,
            then_block=then.block_number,
        )

    def query(self, name: str, row_type: type[RowT], **parameters: Any) -> list[RowT]:
        """Run a named query over them."""
        return self.snapshot.rows_over({"holders": self.table()}, name, row_type, **parameters)

    def quantities(self) -> list[int]:
        """Return what each has, the largest first."""
        (row,) = self.query("holder_quantities", QuantitiesRow)
        return parse_balances(row.quantities_raw or "")

    def page(self, section: Section) -> list[HolderRow]:
        """Return some of them."""
        tables, query, parameters = self._read(section)
        return self.snapshot.rows_over(tables, query, HolderRow, **parameters)

    def columns(self, section: Section, labels: LabelColumns) -> pa.Table:
        """Return some of them as a file shows them: the columns of `page`, `wallet`, and those of the labels.

        Args:
            section: which.
            labels: the tenant's labels by column; the stored addresses are `labelled_addresses`.
        """
        everybody = replace(self, matching=NO_FILTER).table()
        shown = self.snapshot.table(("shown", *self.key), {"holders": everybody}, "holders_shown")
        tables, query, parameters = self._read(section)
        return self.snapshot.columns_over({**tables, "shown": shown}, f"file_of_{query}", **parameters, **labels)

    def _read(self, section: Section) -> tuple[dict[str, Table], str, dict[str, Any]]:
        """Return what reads a section: tables, the name of the query, and its parameters."""
        first, last, skipped, after = 1, _LAST_RANK, section.skipped, section.after
        if section.key == "rank":
            if section.is_descending:
                last = after.rank - 1 if after else last
            else:
                first = after.rank + 1 if after else first
                if self.matching.is_open:
                    # Ranks have no gaps, so the rows in between need not be looked at.
                    first, skipped = first + skipped, 0
                    last = first + section.limit - 1
        parameters: dict[str, Any] = {
            "first_rank": first,
            "last_rank": last,
            "row_count": section.limit,
            "skipped": skipped,
            "supply_raw": section.supply_raw,
            "decimals": self.view.decimals,
            "price": section.price,
        }
        if section.key != "rank":
            parameters |= {"after_key": after.key if after else None, "after_rank": after.rank if after else None}
        tables = {"holders": self.table()}
        if section.then is not None:
            tables["before"] = replace(self, matching=NO_FILTER).before(section.then)
        direction = "descending" if section.is_descending else "ascending"
        query = f"holders_by_{section.key}_{direction}{'_with_before' if section.then else ''}"
        return tables, query, parameters


def count_holders(snapshot: Snapshot, tenant_id: str, subject_keys: Sequence[int]) -> dict[int, HolderCountRow]:
    """Return the holders of tokens at their newest covered blocks, by subject."""
    keys = tuple(subject_keys)
    rows = snapshot.get_or_compute(
        ("holder-counts", tenant_id, keys),
        lambda: snapshot.rows("holder_counts", HolderCountRow, tenant_id=tenant_id, subject_keys=list(keys)),
    )
    return {row.subject_key: row for row in rows}
