"""Checks that guard the raw tables of a network after its cycle; the SQL of each is in `sql/check_<name>.sql`.

A check's query returns one row: the number of faults, and a description of one of them.
"""

from dataclasses import dataclass

import duckdb

from pipelines.chain.headers import MOST_TAIL_BLOCKS
from pipelines.raw.database import named


@dataclass(frozen=True)
class RawCheck:
    """A check: the asset to which it belongs and the property that it proves; a warning fails nothing.

    `asset` is None for the assets of the rows of the network's family.
    """

    name: str
    asset: str | None
    description: str
    is_warning: bool = False


@dataclass(frozen=True)
class Finding:
    """Result of a check: the number of faults, and an example of one."""

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
    """Run every check over the rows of the network in a batch."""
    return [run_check(connection, check, network, batch_id) for check in RAW_CHECKS]


def run_check(connection: duckdb.DuckDBPyConnection, check: RawCheck, network: str, batch_id: int) -> Finding:
    """Run one check over the rows of the network in a batch."""
    parameters = {"network": network, "batch": batch_id, "tail": MOST_TAIL_BLOCKS}
    row = connection.execute(*named(f"check_{check.name}", parameters)).fetchone()
    assert row is not None
    return Finding(check, int(row[0]), row[1])
