"""Units of a network that cannot be read: kept from cycle to cycle, left out, and tried again.

A unit that was blamed is tried after an hour, then at intervals that double up to a day. Tries come after everything
else, and take a small part of the network's time. Where many units fail in one cycle, the node is at fault, and nothing
is kept.
"""

from collections import Counter, defaultdict
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import NamedTuple

import duckdb

from control.clock import stored_now
from pipelines.due import is_due
from pipelines.extract.errors import CallRefused, ExtractError
from pipelines.extract.units import Unit, UnitKind
from pipelines.raw.database import transaction

SHARE = 0.05
"""Part of a network's time that further tries take at most."""
_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(hours=1), timedelta(days=1)
# The node is at fault where more than this number and more than this part of the units of a kind fail in a cycle.
_MANY, _MANY_OF_ALL = 20, 0.1
_NAMES: dict[UnitKind, str] = {
    "contract": "contracts",
    "call": "calls of contracts",
    "wallet": "wallets",
    "block": "blocks of addresses",
    "traces": "blocks with internal transfers",
    "scan": "scans of wallets",
    "difference": "scans of wallets with other outputs than the stored ones",
    "file": "files of data sets",
}
# Kinds that each address has at most one unit of: its part tells two failures apart.
_MARKED: frozenset[UnitKind] = frozenset({"scan", "difference"})


class _State(NamedTuple):
    """State of a unit; `failures` is 0 until it is blamed."""

    reason: str
    call: str
    failures: int
    batch_id: int
    next_try_at: datetime

    def is_due(self, now: datetime) -> bool:
        """Return whether the unit may be tried again."""
        return is_due(self.next_try_at, now, _LONGEST_PAUSE)


class Unread:
    """The units of one network in one cycle; see `pipelines.extract.units.UnreadUnits`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, network: str, batch_id: int) -> None:
        self._connection = connection
        self._network = network
        self._batch_id = batch_id
        self._units: dict[Unit, _State] = {}
        self._asked: dict[UnitKind, set[Unit]] = defaultdict(set)
        rows = connection.execute(
            """
            select unit_kind, address, part, block_number, reason, call, failure_count, batch_id, next_try_at
            from raw.unread_units
            where
                network = $network
                and (
                    unit_kind != 'block'
                    or address in (select address from raw.control_subjects where network = $network)
                )
                -- A file that is needed is tried again within a day.
                and (unit_kind != 'file' or failed_at between $now - interval 2 days and $now)
            """,
            {"network": network, "now": stored_now()},
        ).fetchall()
        for kind, address, part, block, *state in rows:
            self._units[Unit(kind, address, part, block)] = _State(*state)

    def left_out(self, *units: Unit) -> ExtractError | None:
        """Return the error of the first of the units that is left out; None where none is."""
        for unit in units:
            self._asked[unit.kind].add(unit)
            if (state := self._units.get(unit)) is not None:
                return CallRefused(self._network, state.call, unit.block, unit.block, state.reason)
        return None

    def failed(self, unit: Unit, error: ExtractError, *, is_proven: bool, is_final: bool = True) -> None:
        """Note a failure, as `UnreadUnits`; a unit of a block that is not final is tried again in the next cycle."""
        known = self._units.get(unit)
        if unit.kind in _MARKED and known is None:
            self.forget(unit.kind, (unit.address,))
        is_blamed = is_proven or (known is not None and known.batch_id < self._batch_id)
        failures = 0 if known is None else known.failures
        if is_blamed:
            failures += 1
        pause = timedelta()
        if is_blamed and is_final:
            pause = min(_FIRST_PAUSE * 2 ** min(failures - 1, 10), _LONGEST_PAUSE)
        now = stored_now()
        self._units[unit] = state = _State(error.detail, error.call, failures, self._batch_id, now + pause)
        with transaction(self._connection):
            self._delete(unit)
            self._connection.execute(
                "insert into raw.unread_units values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [self._network, *unit, state.call, state.reason, failures, now, state.next_try_at, self._batch_id],
            )

    def worked(self, unit: Unit) -> None:
        """Forget a unit that was read."""
        if self._units.pop(unit, None) is not None:
            self._delete(unit)

    def is_repeated(self, unit: Unit) -> bool:
        """Return whether the unit failed in an earlier cycle, as `UnreadUnits`."""
        known = self._units.get(unit)
        return known is not None and known.batch_id < self._batch_id

    def forget(self, kind: UnitKind, addresses: Collection[str]) -> None:
        """Forget all units of a kind and of some addresses, as `UnreadUnits`."""
        for unit in [one for one in self._units if one.kind == kind and one.address in addresses]:
            self.worked(unit)

    def _delete(self, unit: Unit) -> None:
        self._connection.execute(
            """
            delete from raw.unread_units
            where
                network = ? and unit_kind = ? and address = ? and part = ? and block_number is not distinct from ?
            """,
            [self._network, *unit],
        )

    def addresses(self) -> set[str]:
        """Return the addresses with a contract or call that cannot be read."""
        return {unit.address for unit in self._units if unit.kind in ("contract", "call")}

    def due(self, kinds: Collection[UnitKind]) -> list[Unit]:
        """Return the units of these kinds to try again now, the one that waits longest first."""
        now = stored_now()
        due = [
            (state.next_try_at, unit)
            for unit, state in self._units.items()
            if unit.kind in kinds and state.is_due(now) and state.batch_id < self._batch_id
        ]
        return [unit for _, unit in sorted(due, key=lambda one: (one[0], one[1].address, one[1].part))]

    def addresses_of(self, kind: UnitKind, *, is_waiting: bool = False, is_repeated: bool = False) -> set[str]:
        """Return the addresses of units of a kind: all, those that wait for their next try, or that failed again."""
        now = stored_now()
        return {
            unit.address
            for unit, state in self._units.items()
            if unit.kind == kind and not (is_waiting and state.is_due(now)) and (state.failures > 0 or not is_repeated)
        }

    def blame_the_node(self) -> str | None:
        """Keep no unit of a kind of which many failed in this cycle; return what to say about the node, if anything."""
        new = Counter(
            unit.kind
            for unit, state in self._units.items()
            # Two scans decide who is at fault, the node or the stored rows.
            if state.batch_id == self._batch_id and unit.kind not in _MARKED
        )
        told = []
        for kind, count in new.items():
            asked = len(self._asked[kind])
            if count > _MANY and count > _MANY_OF_ALL * asked:
                units = [
                    unit
                    for unit, state in self._units.items()
                    if unit.kind == kind and state.batch_id == self._batch_id
                ]
                example = self._units[units[0]]
                for unit in units:
                    self.worked(unit)
                told.append(f"the node failed for {count} of {asked} {_NAMES[kind]}: {example.call}: {example.reason}")
        return "; ".join(told) or None

    def blocks(self) -> list[tuple[Unit, str]]:
        """Return the blocks that are left out for an address, each with the reason."""
        return [
            (unit, f"{state.call} of block {unit.block}: {state.reason}; the block is tried again")
            for unit, state in self._units.items()
            if unit.kind == "block"
        ]

    def detail(self) -> str | None:
        """Describe the units that cannot be read, with one example; None where there is none.

        No address is named: all tenants read it.
        """
        if not self._units:
            return None
        counts = Counter(unit.kind for unit in self._units)
        named = ", ".join(f"{count} {_NAMES[kind]}" for kind, count in sorted(counts.items()))
        unit, state = min(self._units.items(), key=lambda one: one[1].next_try_at)
        block = "" if unit.block is None else f" of block {unit.block}"
        return (
            f"cannot be read, and are tried again: {named}; an example is {state.call}{block}: {state.reason}. "
            "Everything else is read"
        )
