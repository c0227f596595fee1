"""Readings of balances and supplies by a cycle: what to read, at which block, and for which tenants.

- Anchors are balances at the block before a covered range: of every pair that ever moved in its subject's view. Those
  of wallets include tokens that they may hold.
- Checks are balances at the cycle's head: of all pairs that moved, and of a few others in turn. If balances of a token
  changed without transfers, all its holders are checked.
- Finals are balances at the newest final block, of pairs that moved in blocks that became final.
- Closings are balances at the last block of a range that ended.
- Narrowings are native balances in between, which locate moved value where transactions are not collected.
- Differences are other balances in between, where one changed without a movement.

If a node has pruned the state for a reading, a later reading replaces it: the marts subtract the movements in between.

Pending readings are decided for each tenant by its own views and readings, as if it were the only one. A reading that
is pending for several tenants is made once. It is stored with these tenants, and only they see it.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import NamedTuple

import duckdb
import polars as pl

from control.clock import stored_now
from pipelines.balances.differences import locate
from pipelines.balances.readings import (
    FIRST_TURN,
    Pair,
    Tenants,
    Turn,
    insert_balance_observations,
    insert_supply_observations,
    read_pending,
    read_turn,
    record_turn,
    replace_suspected_tokens,
    with_tenants,
)
from pipelines.chain.contracts import store_metadata
from pipelines.chain.segments import Collector
from pipelines.chain.unread import SHARE
from pipelines.extract.errors import OF_ONE_UNIT, ChainReorganised, StateUnavailable
from pipelines.extract.family import NATIVE, PAST_BALANCES, SLOW_BALANCES, BalanceRange, Header
from pipelines.raw.database import named, sql, transaction
from pipelines.raw.frames import registered
from pipelines.tables.sources import TABLES

_PAIRS_PER_WRITE = 20_000
# A tenant's readings of pairs without a movement that are checked again, in turn, per cycle and network.
SAMPLE = 100
# For tokens with at most this many holders, one unexpected balance of a moved pair triggers a check of all holders.
_FEW_HOLDERS = 1_000
# Holders of suspected tokens that one cycle reads at most for a tenant; the next cycles read the rest.
_MOST_SUSPECTS = 20_000
# Readings of one cycle that locate moved native value, of wallets that the same tenants track.
_MOST_NARROWING_READS = 5_000
# Readings of one cycle that locate changes of other balances without a movement.
MOST_LOCATING_READS = 2_000
# Maximum number of contracts that one cycle reads again.
_MOST_SECOND_READINGS = 1_000
# Purposes of readings at the head that are compared with earlier readings.
_COMPARED = frozenset({"Check", "Sample"})


class ReadingCounts(NamedTuple):
    """Numbers of balances and supplies that were read and stored, and of those without a state at the node."""

    contracts: int
    balances: int
    supplies: int
    unavailable: int


class _Observer:
    """Makes one network's readings of one cycle and writes them."""

    def __init__(self, collector: Collector, head: Header, surveyed: Set[str]) -> None:
        self.collector = collector
        self.surveyed = surveyed
        self.is_slow = SLOW_BALANCES in collector.capabilities
        self.connection: duckdb.DuckDBPyConnection = collector.connection
        self.network = collector.network
        self.node = collector.node
        self.head = head
        self.contracts = 0
        self.balances = 0
        self.supplies = 0
        self.unavailable = 0
        self.seen: Mapping[str, object] = {}
        for name in ("network_ranges", "native_ranges"):
            self.connection.execute(*named(name, self._parameters({})))
        batch, first_block, final_from = self._rows("seen")[0]
        # Movements in batches after this one, or from this block on, may be unread.
        self.seen = {"batch": batch, "from_block": first_block, "final_from": final_from}
        self.connection.execute(*named("moved_pairs", self._parameters({})))
        self.readings: list[pl.DataFrame] = []
        self.checked: dict[str, set[str]] = defaultdict(set)
        for token, tenants in self._rows("checked_without_supply"):
            self.checked[str(token)].update(_names(tenants))
        self.supplies_at_head: pl.DataFrame | None = None
        # Balances that cannot be read for now, with their tenants.
        self.unread: dict[Pair, set[str]] = defaultdict(set)

    def _parameters(self, extra: Mapping[str, object]) -> dict[str, object]:
        return {
            "network": self.network,
            "head": self.head.number,
            "final": max(self.collector.final_number, 0),
            **self.seen,
            **extra,
        }

    def _rows(self, name: str, **extra: object) -> list[tuple[object, ...]]:
        return self.connection.execute(*named(name, self._parameters(extra))).fetchall()

    def _read(self, pending: Mapping[Pair, Tenants], block_number: int, block_hash: str, purpose: str) -> list[Pair]:
        """Read the pending balances of a block; return those that cannot be read.

        If one is stored already, only the tenants that may see it are added.
        """
        pairs = sorted(pending)
        failed: list[Pair] = []
        for start in range(0, len(pairs), _PAIRS_PER_WRITE):
            part = {pair: pending[pair] for pair in pairs[start : start + _PAIRS_PER_WRITE]}
            read = read_pending(self.connection, self.node, part, block_number, block_hash)
            self.balances += read.read_count
            failed += read.failed
            self._insert(read.balances, purpose)
        for pair in failed:
            self.unread[pair].update(pending[pair])
        return failed

    def _insert(self, pending: pl.DataFrame, purpose: str) -> None:
        """Write balances (BALANCES with `tenant_ids`)."""
        if pending.is_empty():
            return
        insert_balance_observations(self.connection, self.network, pending, purpose, self.collector.batch_id)
        if purpose in _COMPARED:
            self.readings.append(pending)
        if purpose == "Check":
            for token, tenants in pending.select("token_address", "tenant_ids").iter_rows():
                self.checked[token].update(tenants)

    def _read_at(self, pending: Iterable[tuple[object, ...]], purpose: str) -> list[tuple[Pair, Tenants]]:
        """Read (token, holder, block, tenants); return the pairs that were not read."""
        by_block: dict[int, dict[Pair, Tenants]] = defaultdict(dict)
        late: list[tuple[Pair, Tenants]] = []
        for token, holder, block_number, tenants in pending:
            assert isinstance(block_number, int)
            pair, names = (str(token), str(holder)), _names(tenants)
            if self.node.keeps_state(block_number, self.head):
                by_block[block_number][pair] = names
            else:
                late.append((pair, names))
        hashes = self.collector.stored_hashes(sorted(by_block))
        for block_number, pairs in sorted(by_block.items()):
            try:
                failed = self._read(pairs, block_number, hashes[block_number], purpose)
            except StateUnavailable:
                failed = list(pairs)
            late += [(pair, pairs[pair]) for pair in failed]
        self.unavailable += len(late)
        return late

    def metadata(self) -> None:
        """Read contracts if a tenant does not know their kind yet, and those that need a second reading."""
        rows = self._rows("pending_metadata", now=stored_now(), most=_MOST_SECOND_READINGS)
        pending = {str(token): _names(tenants) for token, tenants in rows}
        if not pending:
            return
        frame = self.node.metadata(list(pending), self.head.number)
        tenants = pl.Series("tenant_id", [pending[token] for token in frame["token_address"]], dtype=pl.List(pl.String))
        read = frame.with_columns(tenants).explode("tenant_id")
        partial = self.collector.unread.addresses() & pending.keys()
        if partial:
            # A reading with gaps contradicts no other.
            known = self.connection.execute(
                """
                select token_address, tenant_id from raw.token_metadata
                where network = ? and token_address in (select unnest(?::varchar[]))
                """,
                [self.network, sorted(partial)],
            ).pl()
            read = read.join(known, on=["token_address", "tenant_id"], how="anti")
        store_metadata(self.connection, self.network, read, self.head.number, self.collector.batch_id)
        self.contracts += frame.height

    def anchors(self) -> list[tuple[Pair, Tenants]]:
        """Read the balances before opened ranges; return the pairs that remain without one."""
        return self._read_at(self._rows("pending_anchors"), "Anchor")

    def checks(self, late: Iterable[tuple[Pair, Tenants]]) -> None:
        """Read, at the head, the pairs that moved, those without an anchor, and a sample of the others."""
        tracked = set(self._rows("tracked_at_head"))
        pending: dict[Pair, set[str]] = defaultdict(set)
        for token, holder, tenants in self._rows("pending_checks"):
            pending[str(token), str(holder)].update(_names(tenants))
        for pair, tenants in late:
            token, holder = pair
            pending[pair].update(
                name for name in tenants if ("token", token, name) in tracked or ("wallet", holder, name) in tracked
            )
        self._read_at_head(pending, "Check")
        sampled: dict[Pair, set[str]] = defaultdict(set)
        for tenant in sorted({str(tenant) for _, _, tenant in tracked}):
            for pair in self._sampled(tenant):
                sampled[pair].add(tenant)
        self._read_at_head(sampled, "Sample")

    def _read_at_head(self, pending: Mapping[Pair, Collection[str]], purpose: str) -> None:
        named_pairs = {pair: sorted(names) for pair, names in pending.items() if names}
        if self.is_slow:
            for pair in named_pairs.keys() - {(NATIVE, wallet) for wallet in self.surveyed}:
                self.unread[pair].update(named_pairs.pop(pair))
        self._read(named_pairs, self.head.number, self.head.hash, purpose)

    def _sampled(self, tenant: str) -> list[Pair]:
        """Return the pairs of the tenant's next readings in turn; the first one follows the last one."""
        start = read_turn(self.connection, self.network, tenant)
        rows = self._rows("sampled_pairs", tenant=tenant, most=SAMPLE, **start._asdict())
        if len(rows) < SAMPLE and start != FIRST_TURN:
            rows += self._rows("sampled_pairs", tenant=tenant, most=SAMPLE - len(rows), **FIRST_TURN._asdict())
        if rows:
            block_number, token, holder, _ = rows[-1]
            record_turn(self.connection, self.network, tenant, Turn(int(str(block_number)), str(token), str(holder)))
        return [(str(token), str(holder)) for _, token, holder, is_at_head in rows if is_at_head]

    def native(self) -> None:
        """Read the native balance of tracked wallets and store changes: value also moves without a stored row.

        Slow balances are those of the cycle's survey. All of them are stored: they show the day of the last one.
        """
        known: dict[str, dict[str, object]] = defaultdict(dict)
        for wallet, tenant, quantity in self._rows("tracked_native"):
            if not self.is_slow:
                known[str(wallet)][str(tenant)] = quantity
            elif wallet in self.surveyed:
                known[str(wallet)][str(tenant)] = None
        if not known:
            return
        frame = self.node.balances([(NATIVE, wallet) for wallet in known], self.head.number, self.head.hash)
        if self.is_slow:
            for wallet in known.keys() - set(frame["holder_address"]):
                self.unread[NATIVE, wallet].update(known[wallet])
        changed = _changed(frame, "holder_address", "quantity_raw", known)
        self._insert(changed, "Check")
        self.balances += changed.height

    def finals(self) -> None:
        """Read again, at the final block, the pairs that moved in blocks that became final."""
        final = self.collector.final_number
        if final > 0:
            pending = [(token, holder, final, tenants) for token, holder, tenants in self._rows("pending_finals")]
            self._read_at(pending, "Final")

    def closings(self) -> None:
        """Read, at the last block of ended ranges, the pairs that moved in them."""
        self._read_at(self._rows("pending_closings"), "Closing")

    def check_supplies(self) -> None:
        """Read supplies where ranges begin and end and at the final block; and at the head, to store changed ones.

        A token is suspected if minting and burning do not explain its supply.
        """
        by_block: dict[int, dict[str, Tenants]] = defaultdict(dict)
        for token, block_number, tenants in self._rows("pending_supplies"):
            assert isinstance(block_number, int)
            if self.node.keeps_state(block_number, self.head):
                by_block[block_number][str(token)] = _names(tenants)
        hashes = self.collector.stored_hashes(sorted(by_block))
        for block_number, pending in sorted(by_block.items()):
            try:
                frame = self.node.supplies(sorted(pending), block_number, hashes[block_number])
            except StateUnavailable:
                self.unavailable += len(pending)
                continue
            self._insert_supplies(with_tenants(frame, [pending[token] for token in sorted(pending)]))
        known: dict[str, dict[str, object]] = defaultdict(dict)
        expected: dict[str, dict[str, object]] = defaultdict(dict)
        for token, tenant, quantity, quantity_moved in self._rows("tracked_supplies"):
            known[str(token)][str(tenant)] = quantity
            expected[str(token)][str(tenant)] = quantity_moved
        if not known:
            return
        frame = self.node.supplies(list(known), self.head.number, self.head.hash)
        self.supplies_at_head = with_tenants(frame, [sorted(known[token]) for token in frame["token_address"]])
        self._insert_supplies(_changed(frame, "token_address", "total_supply_raw", known))
        self._suspect(
            [
                (token, tenant)
                for token, read in frame.select("token_address", "total_supply_raw").iter_rows()
                for tenant, quantity in expected[token].items()
                if read is not None and quantity not in (None, read)
            ]
        )

    def _insert_supplies(self, pending: pl.DataFrame) -> None:
        insert_supply_observations(self.connection, self.network, pending, self.collector.batch_id)
        self.supplies += pending.height

    def _suspect(self, suspected: Sequence[tuple[str, str]]) -> None:
        """Put tokens under suspicion, each for a tenant."""
        if suspected:
            batch_id = self.collector.batch_id
            replace_suspected_tokens(self.connection, self.network, suspected, self.head.number, batch_id)

    def suspects(self) -> None:
        """Read every holder of tokens with unexplained readings at the head."""
        if any(not frame.is_empty() for frame in self.readings):
            with registered(self.connection, readings=pl.concat(self.readings)):
                unexplained = self._rows("unexplained_tokens", few=_FEW_HOLDERS)
            self._suspect([(str(token), str(tenant)) for token, tenant in unexplained])
        pending = {
            (str(token), str(holder)): _names(tenants)
            for token, holder, tenants in self._rows("pending_suspects", most=_MOST_SUSPECTS)
        }
        self._read(pending, self.head.number, self.head.hash, "Check")
        counts = Counter(tenant for tenants in pending.values() for tenant in tenants)
        unfinished = [tenant for tenant, count in counts.items() if count >= _MOST_SUSPECTS]
        self.connection.execute(
            "delete from raw.suspected_tokens where network = ? and not list_contains(?::varchar[], tenant_id)",
            [self.network, unfinished],
        )

    def keep_supplies_of_checked(self) -> None:
        """Store the supply at the head of tokens with balances read there, even if it did not change.

        A reading of a token that changes balances by itself confirms only its own block.
        """
        if self.supplies_at_head is None:
            return
        tenants = [
            [tenant for tenant in tracked if tenant in self.checked[token]]
            for token, tracked in self.supplies_at_head.select("token_address", "tenant_ids").iter_rows()
        ]
        self._insert_supplies(_rows_of(self.supplies_at_head, tenants))

    def locate(self) -> None:
        """Find the blocks in which other balances changed without a movement."""
        self.balances += locate(self.collector, self.head, MOST_LOCATING_READS)

    def narrow(self) -> None:
        """Find the blocks in which native balances changed where transactions are not collected."""
        if PAST_BALANCES not in self.collector.capabilities:
            return
        ranges: dict[tuple[str, ...], list[BalanceRange]] = defaultdict(list)
        for wallet, low, high, before, after, tenants in self._rows("unexplained_native"):
            found_in = BalanceRange(str(wallet), int(str(low)), int(str(high)), int(str(before)), int(str(after)))
            ranges[tuple(_names(tenants))].append(found_in)
        if not ranges:
            return
        found = {
            tenants: self.node.balance_changes(of_tenants, _MOST_NARROWING_READS)
            for tenants, of_tenants in ranges.items()
        }
        # The changes were read by number: while the head is the same block, those before it are too.
        (hash_now,) = self.node.headers([self.head.number])["block_hash"]
        if hash_now != self.head.hash:
            detail = "the chain moved while balances were read"
            names = (self.network, self.node.header_call, self.head.number, self.head.number)
            raise ChainReorganised(*names, detail, block_number=self.head.number)
        for tenants, changes in found.items():
            hashes = self.collector.stored_hashes(changes["block_number"].unique().to_list())
            frame = changes.with_columns(
                pl.lit(NATIVE).alias("token_address"),
                pl.col("block_number").replace_strict(hashes, return_dtype=pl.String).alias("block_hash"),
            )
            self._insert(with_tenants(frame, [tenants] * frame.height), "Narrowing")
            self.balances += frame.height

    def try_again(self) -> None:
        """Read units that are due for another try, within a small part of the network's time."""
        unread = self.collector.unread
        due = unread.due(("contract", "call", "wallet"))
        if not due:
            return
        until = time.monotonic() + SHARE * self.node.seconds
        try:
            for unit, error in self.node.read_units(due, self.head):
                if error is None:
                    unread.worked(unit)
                else:
                    unread.failed(unit, error, is_proven=False)
                if time.monotonic() >= until:
                    return
        except OF_ONE_UNIT as error:
            self.collector.note(error, f"another try: {error}")

    def store_edges(self) -> None:
        """Store the headers where covered ranges and gaps begin and end: every tenant sees them with their times."""
        self.collector.store_headers(int(str(number)) for (number,) in self._rows("edges"))


def observe(collector: Collector, head: Header, surveyed: Set[str] = frozenset()) -> ReadingCounts:
    """Make the pending readings of this cycle.

    They cover everything since the network's last complete observation, so that a failed cycle is made up for.

    Args:
        head: block of the readings.
        surveyed: wallets with balances at the head, where the node reads them by surveys.

    Raises:
        ExtractError: a reading failed; earlier readings remain stored, and the rest is pending for the next cycle.
    """
    observer = _Observer(collector, head, surveyed)
    observer.metadata()
    late = observer.anchors()
    observer.checks(late)
    observer.native()
    observer.finals()
    observer.closings()
    observer.check_supplies()
    observer.suspects()
    observer.keep_supplies_of_checked()
    observer.locate()
    observer.narrow()
    observer.store_edges()
    observer.try_again()
    record_observed(collector.connection, collector.network, collector.batch_id, observer.unread)
    return ReadingCounts(observer.contracts, observer.balances, observer.supplies, observer.unavailable)


def _names(tenants: object) -> list[str]:
    """Return the tenants in a cell of a query's result."""
    assert isinstance(tenants, list)
    return tenants


def _changed(frame: pl.DataFrame, key: str, value: str, known: Mapping[str, Mapping[str, object]]) -> pl.DataFrame:
    """Return the rows with another value than the last reading of some tenant, with these tenants as `tenant_ids`."""
    tenants = [
        [tenant for tenant, last_read in known[name].items() if last_read != read]
        for name, read in frame.select(key, value).iter_rows()
    ]
    return _rows_of(frame, tenants)


def _rows_of(frame: pl.DataFrame, tenants: Sequence[Tenants]) -> pl.DataFrame:
    """Return the rows that some tenant may see, with these as `tenant_ids`."""
    rows = frame.filter(pl.Series([bool(names) for names in tenants], dtype=pl.Boolean))
    return with_tenants(rows, [names for names in tenants if names])


def record_observed(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    batch_id: int,
    unread: Mapping[Pair, Collection[str]] | None = None,
) -> None:
    """Record that every pending reading of this batch was made, for the ranges of `network_ranges`.

    Args:
        unread: balances that cannot be read for now, with their tenants; they stay pending.
    """
    lost = [(network, *pair, tenant) for pair, tenants in (unread or {}).items() for tenant in sorted(tenants)]
    with transaction(connection):
        connection.execute("delete from raw.observed_batches where network = ?", [network])
        connection.execute("insert into raw.observed_batches values (?, ?)", [network, batch_id])
        connection.execute("delete from raw.lost_readings where network = ?", [network])
        if lost:
            frame = pl.DataFrame(lost, schema=TABLES["lost_readings"].schema(), orient="row")
            with registered(connection, lost=frame):
                connection.execute("insert into raw.lost_readings by name from lost")
        connection.execute(
            """
            delete from raw.opened_ranges
            where subject_key not in (select subject_key from raw.control_subjects where network != ?)
            """,
            [network],
        )
        connection.execute(sql("record_opened"), {"network": network})
        connection.execute(sql("record_closed"))
