"""Which balances and supplies a cycle reads from the node, and when: anchors, holdings, checks.

An anchor is the balance at the block before a window's range, read when a holder is first seen in it. Holdings are a
wallet's positions at that same block, read when its window opens, so that what never moves is known too. Checks are
balances at the cycle's head of whoever moved in it. Where a node has pruned the state that an anchor needs, the check
serves instead: the marts take it minus the movements in between.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import duckdb
import polars as pl

from pipelines.extract.errors import StateUnavailable
from pipelines.extract.evm.balances import read_balances, read_supplies
from pipelines.extract.evm.blocks import Header, read_headers
from pipelines.extract.evm.rpc import RpcClient
from pipelines.load.chain import (
    insert_balance_observations,
    insert_blocks,
    insert_supply_observations,
    missing_headers,
    record_observed,
)
from pipelines.load.warehouse import sql

_PAIRS_PER_WRITE = 20_000


class Reading(NamedTuple):
    """How many balances were read and written, and how many anchors the node no longer has the state for."""

    balances: int
    supplies: int
    unavailable: int


class _Observer:
    """Reads balances of one network in this cycle, at a block, and writes them."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        client: RpcClient,
        network: str,
        multicall: str | None,
        batch_id: int,
    ) -> None:
        self.connection = connection
        self.client = client
        self.network = network
        self.multicall = multicall
        self.batch_id = batch_id

    def read(self, pairs: Sequence[tuple[str, str]], block_number: int, block_hash: str, purpose: str) -> int:
        for start in range(0, len(pairs), _PAIRS_PER_WRITE):
            part = pairs[start : start + _PAIRS_PER_WRITE]
            frame = read_balances(self.client, part, block_hash, block_number, self.multicall)
            insert_balance_observations(self.connection, self.network, frame, purpose, self.batch_id)
        return len(pairs)

    def store_headers(self, numbers: Sequence[int]) -> dict[int, str]:
        """Make sure that the blocks' headers are stored, and return their hashes."""
        if missing := missing_headers(self.connection, self.network, numbers):
            insert_blocks(self.connection, self.network, read_headers(self.client, missing), self.batch_id)
        return dict(
            self.connection.execute(
                "select block_number, block_hash from raw.blocks where network = ? and list_contains(?, block_number)",
                [self.network, list(numbers)],
            ).fetchall()
        )


def observe(
    connection: duckdb.DuckDBPyConnection,
    client: RpcClient,
    network: str,
    head: Header,
    multicall: str | None,
    batch_id: int,
) -> Reading:
    """Read what this cycle owes: anchors, holdings, checks at the head, supplies.

    Everything since the network's last complete observation is owed: a cycle that failed half-way is made up for.

    Raises:
        ExtractError: a reading failed; what was read before stays, and the rest is owed by the next cycle.
    """
    observer = _Observer(connection, client, network, multicall, batch_id)
    parameters: dict[str, object] = {"network": network, "head": head.number}
    read, unavailable = 0, 0
    late: list[tuple[str, str]] = []
    for purpose in ("Holdings", "Anchor"):
        owed: dict[int, list[tuple[str, str]]] = defaultdict(list)
        for token, holder, block_number in connection.execute(sql(f"owed_{purpose.lower()}"), parameters).fetchall():
            owed[block_number].append((token, holder))
        hashes = observer.store_headers(list(owed))
        for block_number, pairs in sorted(owed.items()):
            try:
                read += observer.read(pairs, block_number, hashes[block_number], purpose)
            except StateUnavailable:
                unavailable += len(pairs)
                late.extend(pairs)
    touched = connection.execute(sql("owed_checks"), parameters).fetchall()
    read += observer.read(sorted({*touched, *_at_head(connection, parameters, late)}), head.number, head.hash, "Check")
    read += _check_native(observer, head)
    supplies = _read_supplies(observer, head)
    record_observed(connection, network, head.number, batch_id)
    return Reading(read, supplies, unavailable)


def _at_head(
    connection: duckdb.DuckDBPyConnection, parameters: dict[str, object], pairs: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Those of the pairs that are tracked at the head: a check there says nothing about a window that ended before."""
    tracked = set(connection.execute(sql("tracked_at_head"), parameters).fetchall())
    return [pair for pair in pairs if ("token", pair[0]) in tracked or ("wallet", pair[1]) in tracked]


def _changed(frame: pl.DataFrame, key: str, value: str, known: dict[str, str | None]) -> pl.DataFrame:
    """The rows whose value is not the one last read for their key."""
    is_changed = [known[name] != read for name, read in frame.select(key, value).iter_rows()]
    return frame.filter(pl.Series(is_changed, dtype=pl.Boolean))


def _check_native(observer: _Observer, head: Header) -> int:
    """Read every tracked wallet's native balance and keep those that changed: value also moves without a trace here."""
    known = dict(
        observer.connection.execute(
            sql("tracked_native"), {"network": observer.network, "head": head.number}
        ).fetchall()
    )
    if not known:
        return 0
    frame = read_balances(
        observer.client, [("native", wallet) for wallet in known], head.hash, head.number, observer.multicall
    )
    changed = _changed(frame, "holder_address", "quantity_raw", known)
    insert_balance_observations(observer.connection, observer.network, changed, "Check", observer.batch_id)
    return changed.height


def _read_supplies(observer: _Observer, head: Header) -> int:
    """Read the supply of every tracked fungible token at the head, and keep those that changed."""
    rows = observer.connection.execute(
        sql("tracked_supplies"), {"network": observer.network, "head": head.number}
    ).fetchall()
    known = dict(rows)
    if not known:
        return 0
    frame = read_supplies(observer.client, list(known), head.hash, head.number, observer.multicall)
    changed = _changed(frame, "token_address", "total_supply_raw", known)
    insert_supply_observations(observer.connection, observer.network, changed, observer.batch_id)
    return changed.height
