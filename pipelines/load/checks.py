"""Checks that guard the raw tables of a network after its cycle; the SQL of each is in `sql/check_<name>.sql`.

A check's query answers one row: how many places are wrong, and one of them in words.
"""

from dataclasses import dataclass

import duckdb

from pipelines.load.warehouse import sql


@dataclass(frozen=True)
class RawCheck:
    """One check: the asset that it speaks of and what it proves."""

    name: str
    asset: str
    description: str


@dataclass(frozen=True)
class Finding:
    """What a check found: how many places are wrong, and one of them."""

    check: RawCheck
    count: int
    example: str | None


RAW_CHECKS = (
    RawCheck("gaps", "blocks", "The tail's headers follow one another, each naming the one before it as its parent."),
    RawCheck("duplicates", "token_transfers", "No log of this cycle is stored twice."),
    RawCheck("orphans", "token_transfers", "Every row of this cycle rests on a stored header with the same hash."),
)


def check_batch(connection: duckdb.DuckDBPyConnection, network: str, batch_id: int) -> list[Finding]:
    """Run every check over what the batch wrote for the network."""
    findings = []
    for check in RAW_CHECKS:
        row = connection.execute(sql(f"check_{check.name}"), {"network": network, "batch": batch_id}).fetchone()
        assert row is not None
        findings.append(Finding(check, int(row[0]), row[1]))
    return findings
