"""Rows of a cap table report: searched, filtered and sorted by the marts, with names and the change of 30 days."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from api.calls import Fetched
from api.paging import Key
from api.parameters import INSTANT
from api.reading.cap_table import Summary, read_summary, to_holdings
from api.reading.holders import HolderSet, Place
from api.reading.moments import State, View, state_before
from api.reading.names import Names
from api.reading.values import amount_text
from api.reports.kept import keep
from api.reports.rows import BalanceBeforeRow, CountRow, FirstChangeRow
from api.rows import HolderRow
from api.schemas.common import AsOfStatus, Reconciliation
from api.schemas.report_data import HolderReportSort, HoldingChangeStatus, ReportHolding
from api.schemas.tokens import Holding
from api.serving import Snapshot

_SPAN = timedelta(days=30)
_CHUNK = 1_000
"""Ranks whose balances of 30 days before are looked up at once: 30 to 50 ms of processor time for one or for all."""


@dataclass(frozen=True, slots=True)
class HolderFilters:
    """Order and conditions of rows; None is no condition. `named` are the addresses whose name `q` is part of."""

    sort: HolderReportSort = "rank"
    q: str | None = None
    named: Sequence[str] = ()
    reconciliation: Reconciliation | None = None

    @property
    def key(self) -> str:
        """What rows are sorted by; the largest quantity, share and value have the first rank."""
        name = self.sort.removeprefix("-")
        return name if name in ("wallet", "reconciliation") else "rank"

    @property
    def is_descending(self) -> bool:
        """Whether keys fall from row to row."""
        return self.sort.startswith("-") != (self.sort.removeprefix("-") in ("quantity", "percentage", "value"))

    @property
    def is_open(self) -> bool:
        """Whether every holder matches."""
        return self.q is None and self.reconciliation is None

    @property
    def conditions(self) -> dict[str, Any]:
        """Parameters of the queries; stored addresses are in lower case."""
        return {
            "search": None if self.q is None else self.q.lower(),
            "named": list(self.named),
            "reconciliation": self.reconciliation,
        }


class Holders:
    """The holders of a token at a moment (None: there are none, as the status says why), in one version."""

    def __init__(self, snapshot: Snapshot, view: View, state: State | None, status: AsOfStatus, names: Names) -> None:
        self.snapshot = snapshot
        self.view = view
        self.state = state
        self.status = status
        self.names = names
        self.summary: Summary = read_summary(snapshot, view, state, status)
        self._keys = {"subject_key": view.subject.subject_key, "tenant_id": view.subject.tenant_id}

    def count(self, filters: HolderFilters) -> int:
        """Return how many match."""
        if self.state is None:
            return 0
        if filters.is_open:
            return self.summary.holder_count or 0
        held = HolderSet(self.snapshot, self.view, self.state)
        key = ("holder-count", *held.key, filters.q, tuple(filters.named), filters.reconciliation)
        return keep(
            self.snapshot, key, lambda: held.query("holder_matches", CountRow, **filters.conditions)[0].row_count
        )

    def page(self, filters: HolderFilters, limit: int, offset: int) -> list[ReportHolding]:
        """Return the rows of a page."""
        if self.state is None:
            return []
        return self.to_items(self.state, self.rows(filters, limit, offset))

    def rows(self, filters: HolderFilters, limit: int, offset: int) -> Sequence[HolderRow]:
        """Return the holders of a page as the marts know them."""
        if self.state is None:
            return []
        held = HolderSet(self.snapshot, self.view, self.state)
        # What people look for is looked for again, by others and by whoever turns back a page.
        asked = (filters.sort, filters.q, tuple(filters.named), filters.reconciliation, limit, offset)
        return keep(
            self.snapshot, ("holder-rows", *held.key, *asked), lambda: self._read(held, filters, limit, offset, None)
        )

    def on(self, snapshot: Snapshot) -> "Holders":
        """Return the same holders, read from a snapshot of the same version that was opened later."""
        return Holders(snapshot, self.view, self.state, self.status, self.names)

    def fetch(self, filters: HolderFilters, limit: int, after: Key | None) -> Fetched[ReportHolding]:
        """Return one batch of all rows, each as cheap as the first."""
        if self.state is None:
            return Fetched([], None)
        rows = self._read(HolderSet(self.snapshot, self.view, self.state), filters, limit, 0, after)
        last = _key_of(rows[-1], filters) if len(rows) == limit else None
        return Fetched(self.to_items(self.state, rows), last)

    def to_items(self, state: State, rows: Sequence[HolderRow]) -> list[ReportHolding]:
        """Return rows as they leave the process."""
        held = to_holdings(self.snapshot, self.view, state, self.summary, self.names, rows)
        changes = self._changes(state, rows)
        items: list[ReportHolding] = []
        for row, holding in zip(rows, held, strict=True):
            change, status = changes[row.holder_address]
            shown = {name: getattr(holding, name) for name in Holding.__struct_fields__}
            items.append(ReportHolding(**shown, change30d=change, change30d_status=status))
        return items

    def _read(
        self, held: HolderSet, filters: HolderFilters, limit: int, offset: int, after: Key | None
    ) -> Sequence[HolderRow]:
        supply_raw = self.summary.total_supply_raw
        if filters.is_open and filters.key == "rank":
            return held.by_rank(
                supply_raw,
                self.summary.holder_count or 0,
                limit,
                is_descending=filters.is_descending,
                after=Place(int(after[0]), str(after[1]), str(after[2])) if after else None,
                skipped=offset,
            )
        return held.sorted_by(
            filters.key,
            supply_raw,
            limit,
            is_descending=filters.is_descending,
            after=(str(after[0]), int(after[1])) if after else None,
            skipped=offset,
            **filters.conditions,
        )

    def _changes(self, state: State, rows: Sequence[HolderRow]) -> dict[str, tuple[str | None, HoldingChangeStatus]]:
        """Return quantity less that of 30 days before, by holder."""
        then = self._state_before(state)
        if then is None:
            return {row.holder_address: (None, "NotCovered") for row in rows}
        known = self._balances_then(state, then, self._neighbours(state, rows))
        decimals = self.view.token.decimals if self.view.token else None
        found: dict[str, tuple[str | None, HoldingChangeStatus]] = {}
        for row in rows:
            # What did not change since is not named.
            before = known.get(row.holder_address, row.quantity_raw)
            if before is None:
                found[row.holder_address] = None, "UnknownBefore"
            else:
                change = amount_text(int(row.quantity_raw) - int(before), decimals)
                found[row.holder_address] = change, "Known"
        return found

    def _neighbours(self, state: State, rows: Sequence[HolderRow]) -> Sequence[str]:
        """Return the holders of rows; of a page of ranks those of the pages around it too, since they cost no more."""
        addresses = [row.holder_address for row in rows]
        ranks = [row.rank for row in rows]
        if not state.is_current or not ranks or max(ranks) - min(ranks) >= len(ranks):
            return addresses
        first, last = min(ranks) // _CHUNK * _CHUNK, max(ranks) // _CHUNK * _CHUNK + _CHUNK - 1
        held = HolderSet(self.snapshot, self.view, state)

        def read() -> Sequence[str]:
            count = self.summary.holder_count or 0
            around = held.by_rank(None, count, last - max(first, 1) + 1, skipped=max(first, 1) - 1)
            return [row.holder_address for row in around]

        return keep(self.snapshot, ("neighbours", *held.key, first, last), read)

    def _state_before(self, state: State) -> State | None:
        if state.valued_at is None:
            return None
        end = state.valued_at - _SPAN + INSTANT
        key = ("state-before", *self._keys.values(), end)
        return self.snapshot.remember(key, lambda: state_before(self.snapshot, self.view, end))

    def _balances_then(self, state: State, then: State, addresses: Sequence[str]) -> dict[str, str | None]:
        """Return the balances of holders at an earlier moment, null where unknown; those still as then may be missing.

        Balances of a million holders lie in the order of blocks: what changed since is little to look through, all that
        changed before is much.
        """
        wanted = sorted(set(addresses))
        digest = hashlib.blake2b("\n".join(wanted).encode("ascii"), digest_size=16).digest()

        def read() -> dict[str, str | None]:
            found: dict[str, str | None] = {}
            looked_up = wanted
            if then.first_block == state.first_block:
                rows = self.snapshot.rows(
                    "report_first_changes",
                    FirstChangeRow,
                    **self._keys,
                    first_block=state.first_block,
                    after_block=then.block_number,
                    last_block=state.block_number,
                    holders=wanted,
                )
                found = {row.holder_address: None if row.is_first else row.before_raw for row in rows}
                looked_up = [row.holder_address for row in rows if row.is_adjusted and not row.is_first]
            if looked_up:
                balances = self.snapshot.rows(
                    "report_balances_before", BalanceBeforeRow, **self._keys, **_moment(then), holders=looked_up
                )
                known = {row.holder_address: row.balance_raw for row in balances}
                found |= {address: known.get(address) for address in looked_up}
            return found

        return keep(self.snapshot, ("balances-then", *self._keys.values(), state.block_number, then, digest), read)


def _moment(state: State) -> dict[str, int]:
    return {"first_block": state.first_block, "block_number": state.block_number}


def _key_of(row: HolderRow, filters: HolderFilters) -> Key:
    if filters.is_open and filters.key == "rank":
        return (row.rank, row.quantity_raw, row.holder_address)
    keys = {"wallet": row.holder_address, "reconciliation": str(row.reconciliation), "rank": ""}
    return (keys[filters.key], row.rank)
