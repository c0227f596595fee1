"""The main marts computed by hand-written SQL (`handwritten_sql/`), for comparison with the service's build."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb

from warehouse.opening import quiet

_SQL = Path(__file__).parent / "handwritten_sql"
# Tables that are the product's, column by column.
_MARTS = (
    "blocks",
    "token_activities",
    "wallet_activities",
    "balance_changes",
    "supply_changes",
    "cap_tables",
    "wallet_balances",
)
_LIMB = 10**15


def compute(warehouse: Path, results: Path, part: str, memory_mb: int) -> None:
    """Run a file of the hand-written SQL, with as many threads as dbt has."""
    # In a process that `python -m` spawned, DuckDB draws a progress bar: it takes that for an interactive one.
    with quiet(duckdb.connect()) as connection:
        connection.execute(f"set timezone = 'UTC'; set threads = 2; set memory_limit = '{memory_mb}MB'")
        connection.execute(f"attach '{warehouse}' as warehouse (read_only)")
        connection.execute(f"attach '{results}' as results")
        connection.execute("use results")
        connection.execute((_SQL / f"{part}.sql").read_text())


def expect_equal(results: Path, marts: Path) -> None:
    """Compare row counts and digests of the main marts, and the summaries' figures of concentration.

    Raises:
        RuntimeError: they differ; the message says where.
    """
    with duckdb.connect() as connection:
        connection.execute(f"attach '{results}' as results (read_only)")
        connection.execute(f"attach '{marts}' as marts_db (read_only)")
        for mart in _MARTS:
            columns = _columns(connection, f"results.{mart}")
            present = _columns(connection, f"marts_db.marts.{mart}")
            # The mart may have more columns for charts, derived from the others.
            if columns != [column for column in present if column in columns or not column[0].endswith("_approx")]:
                raise RuntimeError(f"{mart}: other columns or types: {columns}")
            names = ", ".join(name for name, _ in columns)
            ours, written = (
                connection.execute(f"select count(*), sum(hash({names})) from {table}").fetchone()
                for table in (f"marts_db.marts.{mart}", f"results.{mart}")
            )
            if ours != written:
                raise RuntimeError(f"{mart}: rows and digest are {ours}, by hand {written}")
        summaries = _rows(connection, "marts_db.marts.cap_table_summaries")
        integers = _rows(connection, "results.cap_table_integers")
        if summaries.keys() != integers.keys():
            raise RuntimeError(f"cap_table_summaries: of {sorted(summaries)}, by hand {sorted(integers)}")
        for key, summary in summaries.items():
            for name, value in _summary(integers[key]).items():
                # A figure is null if the known balances only bound it.
                if summary[name] is not None and summary[name] != value:
                    raise RuntimeError(f"cap_table_summaries, {key}: {name} is {summary[name]}, by hand {value}")


def _columns(connection: duckdb.DuckDBPyConnection, table: str) -> list[tuple[str, str]]:
    return sorted(connection.execute(f"select column_name, column_type from (describe {table})").fetchall())


def _rows(connection: duckdb.DuckDBPyConnection, table: str) -> dict[int, dict[str, Any]]:
    # BIGNUM comes as text, exact at any size.
    found = connection.execute(f"select * from {table}")
    names = [column[0] for column in found.description]
    rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    return {row["subject_key"]: row for row in rows}


def _summary(written: dict[str, Any]) -> dict[str, Any]:
    """Columns of `cap_table_summaries` from the integers of one token."""
    name = {key: int(value) for key, value in written.items()}
    squares = name["high_squares"] * _LIMB**2 + name["mixed_squares"] * _LIMB + name["low_squares"]
    spread = 2 * name["running_sum_raw"] - (name["holder_count"] + 1) * name["held_raw"]
    return {
        "total_supply_raw": written["total_supply_raw"],
        "holder_count": written["holder_count"],
        "nakamoto": written["nakamoto"],
        "top10_percentage": _ratio(100 * name["top10_raw"], name["total_supply_raw"]),
        "hhi": _ratio(10_000 * squares, name["total_supply_raw"] ** 2),
        "gini": _ratio(spread, name["holder_count"] * name["held_raw"]),
    }


def _ratio(numerator: int, denominator: int) -> str:
    """The text of a quotient, rounded half to even to 12 decimals."""
    units = round(Fraction(numerator * 10**12, denominator))
    return format(Decimal(units).scaleb(-12).normalize(), "f")
