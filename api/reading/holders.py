"""The holders of a token at a moment: now from the marts, earlier from the balances known then. One reading of both."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from api.reading.moments import State, View
from api.rows import HolderCountRow, HolderRow, QuantitiesRow, Row
from api.serving import Snapshot

Found = TypeVar("Found", bound=Row)


@dataclass(frozen=True, slots=True)
class Place:
    """The last holder of a page."""

    rank: int
    quantity_raw: str
    holder_address: str


@dataclass(frozen=True, slots=True)
class HolderSet:
    """The holders of a token at a moment, in one version."""

    snapshot: Snapshot
    view: View
    state: State

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells it from others of the version."""
        subject = self.view.subject
        return (subject.subject_key, subject.tenant_id, self.state.block_number, self.state.first_block)

    def query(self, name: str, row_type: type[Found], **parameters: Any) -> list[Found]:
        """Run a named query over them."""
        keys = {"subject_key": self.view.subject.subject_key, "tenant_id": self.view.subject.tenant_id}
        if self.state.is_current:
            return self.snapshot.rows_of_holders("holders_now", name, row_type, **keys, **parameters)
        moment = {"first_block": self.state.first_block, "block_number": self.state.block_number}
        return self.snapshot.rows_of_holders("holders_as_of", name, row_type, **keys, **moment, **parameters)

    def quantities(self) -> list[int]:
        """Return what each has, the largest first."""
        (row,) = self.query("holder_quantities", QuantitiesRow)
        return sorted(map(int, (row.quantities_raw or "").split()), reverse=True)

    def by_rank(
        self,
        supply_raw: str | None,
        holder_count: int,
        limit: int,
        *,
        is_descending: bool = False,
        after: Place | None = None,
        skipped: int = 0,
    ) -> list[HolderRow]:
        """Return holders in the order of rank or, descending, against it.

        Args:
            supply_raw: what percentages are of.
            holder_count: how many there are, which is the last rank.
            limit: so many at most.
            is_descending: the smallest first.
            after: only those behind it.
            skipped: how many are left out.
        """
        step = -1 if is_descending else 1
        before = after.rank if after else holder_count + 1 if is_descending else 0
        return self.query(
            "holders_by_rank",
            HolderRow,
            is_descending=is_descending,
            after_holder=after.holder_address if after else None,
            after_quantity_raw=after.quantity_raw if after else None,
            first_rank=before + step * (skipped + 1),
            row_count=limit,
            skipped=skipped,
            **self._shown(supply_raw),
        )

    def sorted_by(
        self,
        sort: str,
        supply_raw: str | None,
        limit: int,
        *,
        is_descending: bool = False,
        after: tuple[str, int] | None = None,
        skipped: int = 0,
        search: str | None = None,
        named: Sequence[str] = (),
        reconciliation: str | None = None,
    ) -> list[HolderRow]:
        """Return holders that match, by 'wallet', 'reconciliation' or 'rank', equal ones by rank.

        Args:
            sort: what by.
            supply_raw: what percentages are of.
            limit: so many at most.
            is_descending: backwards.
            after: only those behind this key ('' for 'rank') and rank.
            skipped: how many are left out.
            search: part of the address, in lower case; None is no condition.
            named: addresses that match all the same.
            reconciliation: only those; None is no condition.
        """
        after_key, after_rank = after or (None, None)
        return self.query(
            "holders_sorted",
            HolderRow,
            sort=sort,
            is_descending=is_descending,
            search=search,
            named=list(named),
            reconciliation=reconciliation,
            after_key=after_key,
            after_rank=after_rank,
            row_count=limit,
            skipped=skipped,
            **self._shown(supply_raw),
        )

    def _shown(self, supply_raw: str | None) -> dict[str, Any]:
        return {"decimals": self.view.token.decimals if self.view.token else None, "total_supply_raw": supply_raw}


def count_holders(snapshot: Snapshot, tenant_id: str, subject_keys: Sequence[int]) -> dict[int, HolderCountRow]:
    """Return the holders of tokens at their newest covered blocks, by subject."""
    keys = tuple(subject_keys)
    rows = snapshot.remember(
        ("holder-counts", tenant_id, keys),
        lambda: snapshot.rows("holder_counts", HolderCountRow, tenant_id=tenant_id, subject_keys=list(keys)),
    )
    return {row.subject_key: row for row in rows}
