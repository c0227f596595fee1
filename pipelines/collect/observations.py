"""Which balances and supplies a cycle reads from the node, and when.

Anchors are balances at the block before a covered range, of every pair that ever moved in its subject's view and, for
wallets, of what they may hold. Checks are balances at the cycle's head of whoever moved, of a few others in turn, and
of every holder of a token whose balances were seen to change otherwise than its transfers say. Finals are balances at
the newest final block of whoever moved in blocks that became final. Closings are balances at the last block of a range
that ended. Narrowings are native balances in between, which say in which block value moved where its transactions were
not asked for. Differences are other balances in between, where one changed without a movement. Where a node has pruned
the state that a reading needs, a later reading serves instead: the marts take it minus the movements in between.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import duckdb
import polars as pl

from pipelines.collect.differences import locate
from pipelines.collect.segments import Collector
from pipelines.extract.errors import ChainReorganised, StateUnavailable
from pipelines.extract.family import NATIVE, PAST_BALANCES, BalanceRange, Header
from pipelines.load.chain import (
    insert_balance_observations,
    insert_supply_observations,
    record_observed,
    replace_suspected_tokens,
)
from pipelines.load.frames import registered
from pipelines.load.warehouse import named

_PAIRS_PER_WRITE = 20_000
# Pairs that did not move and are checked all the same, per cycle and network: each takes its turn.
_SAMPLE = 100
# Up to so many holders, one that moved and has another balance than it should is reason enough to check all of them.
_FEW_HOLDERS = 1_000
# Holders of suspected tokens that one cycle reads at most; the next ones read the rest.
_MOST_SUSPECTS = 20_000
# Readings by which one cycle narrows down when native value moved.
_MOST_NARROWING_READS = 5_000
# Readings by which one cycle finds the blocks in which other balances changed without a movement.
_MOST_LOCATING_READS = 2_000

Pair = tuple[str, str]


class Reading(NamedTuple):
    """How many balances and supplies were read and written, and how many the node no longer has the state for."""

    balances: int
    supplies: int
    unavailable: int


class _Observer:
    """Makes one network's readings of one cycle and writes them."""

    def __init__(self, collector: Collector, head: Header) -> None:
        self.collector = collector
        self.connection: duckdb.DuckDBPyConnection = collector.connection
        self.network = collector.network
        self.node = collector.node
        self.head = head
        self.balances = 0
        self.supplies = 0
        self.unavailable = 0
        self.seen: Mapping[str, object] = {}
        self.connection.execute(*named("network_ranges", self._parameters({})))
        batch, first_block, final_from = self._rows("seen")[0]
        # Movements in batches after this one, or from this block on, may be unread.
        self.seen = {"batch": batch, "from_block": first_block, "final_from": final_from}
        self.readings: list[pl.DataFrame] = []
        # Pairs that were read at the head already, by an earlier cycle or this one.
        self.read_at_head = {
            (str(token), str(holder))
            for token, holder in self.connection.execute(
                "select token_address, holder_address from raw.balance_observations "
                "where network = ? and block_number = ?",
                [self.network, head.number],
            ).fetchall()
        }

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

    def _read(self, pairs: Sequence[Pair], block_number: int, block_hash: str, purpose: str) -> list[pl.DataFrame]:
        frames = []
        new = pairs
        if block_number == self.head.number:
            new = [pair for pair in pairs if pair not in self.read_at_head]
            self.read_at_head.update(new)
        for start in range(0, len(new), _PAIRS_PER_WRITE):
            part = new[start : start + _PAIRS_PER_WRITE]
            frame = self.node.balances(part, block_number, block_hash)
            insert_balance_observations(self.connection, self.network, frame, purpose, self.collector.batch_id)
            frames.append(frame)
            self.balances += frame.height
        return frames

    def _read_at(self, owed: Iterable[tuple[object, ...]], purpose: str) -> list[Pair]:
        """Read (token, holder, block) and return the pairs whose state the node has not got."""
        by_block: dict[int, list[Pair]] = defaultdict(list)
        late: list[Pair] = []
        for token, holder, block_number in owed:
            assert isinstance(block_number, int)
            if self.node.keeps_state(block_number, self.head):
                by_block[block_number].append((str(token), str(holder)))
            else:
                late.append((str(token), str(holder)))
        hashes = self.collector.stored_hashes(sorted(by_block))
        for block_number, pairs in sorted(by_block.items()):
            try:
                self._read(sorted(pairs), block_number, hashes[block_number], purpose)
            except StateUnavailable:
                late.extend(pairs)
        self.unavailable += len(late)
        return late

    def anchors(self) -> list[Pair]:
        """Read what opens ranges; return the pairs that must do without."""
        self.connection.execute(*named("moved_pairs", self._parameters({})))
        return self._read_at(self._rows("owed_anchors"), "Anchor")

    def checks(self, late: Sequence[Pair]) -> None:
        """Read at the head who moved, who has no anchor, and a sample of the others."""
        tracked = set(self._rows("tracked_at_head"))
        pairs = {(str(token), str(holder)) for token, holder in self._rows("owed_checks")}
        pairs |= {pair for pair in late if ("token", pair[0]) in tracked or ("wallet", pair[1]) in tracked}
        self.readings += self._read(sorted(pairs), self.head.number, self.head.hash, "Check")
        sample = {(str(token), str(holder)) for token, holder in self._sampled()}
        self.readings += self._read(sorted(sample - pairs), self.head.number, self.head.hash, "Sample")

    def _sampled(self) -> list[tuple[object, ...]]:
        row = self.connection.execute("select coalesce(max(rowid), -1) from raw.balance_observations").fetchone()
        assert row is not None
        rows = int(row[0]) + 1
        if not rows:
            return []
        first = self.collector.batch_id * _SAMPLE % rows
        return self._rows("sampled_pairs", first=first, last=first + _SAMPLE - 1)

    def native(self) -> None:
        """Read every tracked wallet's native balance and keep those that changed: value also moves without a trace."""
        known = {str(wallet): quantity for wallet, quantity in self._rows("tracked_native")}
        if not known:
            return
        frame = self.node.balances([(NATIVE, wallet) for wallet in known], self.head.number, self.head.hash)
        changed = _changed(frame, "holder_address", "quantity_raw", known)
        self.read_at_head.update((NATIVE, wallet) for wallet in changed["holder_address"])
        insert_balance_observations(self.connection, self.network, changed, "Check", self.collector.batch_id)
        self.balances += changed.height

    def finals(self) -> None:
        """Read again, at the final block, who moved in what became final."""
        final = self.collector.final_number
        if final > 0:
            owed = [(token, holder, final) for token, holder in self._rows("owed_finals")]
            self._read_at(owed, "Final")

    def closings(self) -> None:
        """Read who moved in ranges that ended."""
        self._read_at(self._rows("owed_closings"), "Closing")

    def check_supplies(self) -> None:
        """Read supplies where ranges begin and end and at the final block; and at the head, to keep those that changed.

        A supply that minting and burning do not explain casts doubt on the token.
        """
        by_block: dict[int, list[str]] = defaultdict(list)
        for token, block_number in self._rows("owed_supplies"):
            assert isinstance(block_number, int)
            if self.node.keeps_state(block_number, self.head):
                by_block[block_number].append(str(token))
        hashes = self.collector.stored_hashes(sorted(by_block))
        for block_number, tokens in sorted(by_block.items()):
            try:
                frame = self.node.supplies(sorted(tokens), block_number, hashes[block_number])
            except StateUnavailable:
                self.unavailable += len(tokens)
                continue
            self._insert_supplies(frame)
        rows = self._rows("tracked_supplies")
        if not rows:
            return
        known = {str(token): quantity for token, quantity, _ in rows}
        expected = {str(token): quantity for token, _, quantity in rows}
        frame = self.node.supplies(list(known), self.head.number, self.head.hash)
        self._insert_supplies(_changed(frame, "token_address", "total_supply_raw", known))
        self._suspect(
            [
                token
                for token, read in frame.select("token_address", "total_supply_raw").iter_rows()
                if read is not None and expected[token] not in (None, read)
            ]
        )

    def _insert_supplies(self, frame: pl.DataFrame) -> None:
        insert_supply_observations(self.connection, self.network, frame, self.collector.batch_id)
        self.supplies += frame.height

    def _suspect(self, tokens: Sequence[str]) -> None:
        if tokens:
            replace_suspected_tokens(self.connection, self.network, tokens, self.head.number, self.collector.batch_id)

    def suspects(self) -> None:
        """Read every holder of tokens whose readings at the head are not what they should be."""
        if any(not frame.is_empty() for frame in self.readings):
            with registered(self.connection, readings=pl.concat(self.readings)):
                unexplained = self._rows("unexplained_tokens", few=_FEW_HOLDERS)
            self._suspect([str(token) for (token,) in unexplained])
        owed = [(str(token), str(holder)) for token, holder in self._rows("owed_suspects", most=_MOST_SUSPECTS)]
        self._read(owed, self.head.number, self.head.hash, "Check")
        if len(owed) < _MOST_SUSPECTS:
            self.connection.execute("delete from raw.suspected_tokens where network = ?", [self.network])

    def locate(self) -> None:
        """Find the blocks in which other balances changed without a movement."""
        self.balances += locate(self.collector, self.head, _MOST_LOCATING_READS)

    def narrow(self) -> None:
        """Find the blocks in which native balances changed where transactions were not asked for."""
        if PAST_BALANCES not in self.collector.capabilities:
            return
        ranges = [
            BalanceRange(str(wallet), int(str(low)), int(str(high)), int(str(before)), int(str(after)))
            for wallet, low, high, before, after in self._rows("unexplained_native")
        ]
        if not ranges:
            return
        found = self.node.balance_changes(ranges, _MOST_NARROWING_READS)
        # They were read by number: as long as the head is the same block, so are those before it.
        (hash_now,) = self.node.headers([self.head.number])["block_hash"]
        if hash_now != self.head.hash:
            detail = "the chain moved while balances were read"
            names = (self.network, self.node.header_call, self.head.number, self.head.number)
            raise ChainReorganised(*names, detail, block_number=self.head.number)
        hashes = self.collector.stored_hashes(found["block_number"].unique().to_list())
        frame = found.with_columns(
            pl.lit(NATIVE).alias("token_address"),
            pl.col("block_number").replace_strict(hashes, return_dtype=pl.String).alias("block_hash"),
        )
        insert_balance_observations(self.connection, self.network, frame, "Narrowing", self.collector.batch_id)
        self.balances += frame.height

    def store_edges(self) -> None:
        """Store the headers where covered ranges and gaps begin and end: every tenant sees them with their times."""
        self.collector.store_headers(int(str(number)) for (number,) in self._rows("edges"))


def observe(collector: Collector, head: Header) -> Reading:
    """Read what this cycle owes.

    Everything since the network's last complete observation is owed: a cycle that failed half-way is made up for.

    Raises:
        ExtractError: a reading failed; what was read before stays, and the rest is owed by the next cycle.
    """
    observer = _Observer(collector, head)
    late = observer.anchors()
    observer.checks(late)
    observer.native()
    observer.finals()
    observer.closings()
    observer.check_supplies()
    observer.suspects()
    observer.locate()
    observer.narrow()
    observer.store_edges()
    record_observed(collector.connection, collector.network, collector.batch_id)
    return Reading(observer.balances, observer.supplies, observer.unavailable)


def _changed(frame: pl.DataFrame, key: str, value: str, known: Mapping[str, object]) -> pl.DataFrame:
    """The rows whose value is not the one last read for their key."""
    is_changed = [known[name] != read for name, read in frame.select(key, value).iter_rows()]
    return frame.filter(pl.Series(is_changed, dtype=pl.Boolean))
