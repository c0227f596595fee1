"""Checks that guard the raw tables of a network after its cycle; the SQL of each is in `sql/check_<name>.sql`.

A check's query answers one row: how many places are wrong, and one of them in words.
"""

from dataclasses import dataclass

import duckdb

from pipelines.chain.headers import MOST_TAIL_BLOCKS
from pipelines.raw.database import named


@dataclass(frozen=True)
class RawCheck:
    """One check: the asset that it speaks of and what it proves; a warning fails nothing.

    Without an asset it is one of the rows of the network's family.
    """

    name: str
    asset: str | None
    description: str
    is_warning: bool = False


@dataclass(frozen=True)
class Finding:
    """What a check found: how many places are wrong, and one of them."""

    check: RawCheck
    count: int
    example: str | None


DECIMALS = RawCheck(
    "decimals",
    "token_metadata",
    "Common tokens have the decimals that their definition gives them; numbers follow the contract.",
    is_warning=True,
)
RAW_CHECKS = (
    RawCheck("gaps", "blocks", "The tail's headers follow one another, each naming the one before it as its parent."),
    RawCheck("duplicates", None, "No movement of a token of this cycle is stored twice."),
    RawCheck("orphans", None, "Every row of this cycle rests on a stored header with the same hash."),
    DECIMALS,
    RawCheck(
        "symbols", "token_metadata", "Common tokens have the symbol that their definition gives them.", is_warning=True
    ),
)


def check_batch(connection: duckdb.DuckDBPyConnection, network: str, batch_id: int) -> list[Finding]:
    """Run every check over what the batch wrote for the network."""
    return [run_check(connection, check, network, batch_id) for check in RAW_CHECKS]


def run_check(connection: duckdb.DuckDBPyConnection, check: RawCheck, network: str, batch_id: int) -> Finding:
    """Run one check over what the batch wrote for the network."""
    parameters = {"network": network, "batch": batch_id, "tail": MOST_TAIL_BLOCKS}
    row = connection.execute(*named(f"check_{check.name}", parameters)).fetchone()
    assert row is not None
    return Finding(check, int(row[0]), row[1])
