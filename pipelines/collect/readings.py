"""Balances that are owed at a block: those that are stored already are not asked for again."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import duckdb
import polars as pl

from pipelines.extract.family import BALANCES, Node
from pipelines.load.readings import stored_balances

Pair: TypeAlias = tuple[str, str]
"""Token and holder."""

Tenants: TypeAlias = Sequence[str]


def owed_to(frame: pl.DataFrame, tenants: Sequence[Tenants]) -> pl.DataFrame:
    """Return rows with `tenant_ids`, those to whom each is owed, in their order."""
    return frame.with_columns(pl.Series("tenant_ids", tenants, dtype=pl.List(pl.String)))


def read_owed(
    connection: duckdb.DuckDBPyConnection,
    node: Node,
    owed: Mapping[Pair, Tenants],
    block_number: int,
    block_hash: str,
) -> tuple[pl.DataFrame, int]:
    """Read the balances that are owed to tenants at the end of a block and were not yet.

    Returns:
        BALANCES with `tenant_ids`, to whom each was not owed yet, and how many the node was asked for.
    """
    pairs = sorted(owed)
    known = stored_balances(connection, node.network.name, block_number, pairs)
    unread = [pair for pair in pairs if pair not in known]
    frame = node.balances(unread, block_number, block_hash) if unread else pl.DataFrame(schema=BALANCES)
    again = [
        (*pair, block_number, block_hash, quantity)
        for pair, (quantity, had) in known.items()
        if not had.issuperset(owed[pair])
    ]
    frame = pl.concat([frame, pl.DataFrame(again, schema=BALANCES, orient="row")])
    had_by = {pair: had for pair, (_, had) in known.items()}
    tenants: list[Tenants] = [
        [name for name in owed[token, holder] if name not in had_by.get((token, holder), ())]
        for token, holder in frame.select("token_address", "holder_address").iter_rows()
    ]
    return owed_to(frame, tenants), len(unread)
