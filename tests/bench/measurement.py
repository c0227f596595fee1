"""What a benchmark returns, and how repeated measurements are put together and shown."""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import pandas as pd


@dataclass(frozen=True)
class Measurement:
    """One measured value. Repeated ones share benchmark, quantity and unit; `goal` is shown beside them."""

    benchmark: str
    quantity: str
    unit: str
    value: float
    goal: str = ""


def summarised(measurements: Iterable[Measurement]) -> pd.DataFrame:
    """Return one row per quantity, in the order of the first measurement: count, median, min and max over the runs."""
    frame = pd.DataFrame([asdict(measurement) for measurement in measurements])
    grouped = frame.groupby(["benchmark", "quantity", "unit", "goal"], sort=False)["value"]
    return grouped.agg(["count", "median", "min", "max"]).reset_index().rename(columns={"count": "runs"})


def as_text(summary: pd.DataFrame) -> str:
    """Return the summary as an aligned table, values with four significant digits."""
    shown = summary.copy()
    for column in ("median", "min", "max"):
        shown[column] = summary[column].map(_rounded)
    numbers = {"runs", "median", "min", "max"}
    widths = {column: max(len(column), *shown[column].astype(str).map(len)) for column in shown.columns}

    def line(cells: Iterable[tuple[str, str]]) -> str:
        padded = (text.rjust(widths[name]) if name in numbers else text.ljust(widths[name]) for name, text in cells)
        return "  ".join(padded).rstrip()

    rows = [dict(zip(shown.columns, map(str, row), strict=True)) for row in shown.itertuples(index=False)]
    return "\n".join([line((name, name) for name in shown.columns), *(line(row.items()) for row in rows)])


def _rounded(value: float) -> str:
    """Four significant digits, and every digit of what is left of the point."""
    magnitude = math.floor(math.log10(abs(value))) if value else 0
    return f"{value:,.{min(max(3 - magnitude, 0), 4)}f}"
