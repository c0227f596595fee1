"""Clocks and measurements of benchmarks, and summaries of repeated measurements."""

import math
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl
import psutil


class Clock:
    """Wall and processor seconds of this process, all threads, and of the node's if it is named, since it was made."""

    def __init__(self, node_pid: int | None = None) -> None:
        self._node = None if node_pid is None else psutil.Process(node_pid)
        self._wall, self._cpu, self._node_cpu = time.perf_counter(), time.process_time(), self._node_seconds()

    def _node_seconds(self) -> float:
        return 0.0 if self._node is None else sum(self._node.cpu_times()[:2])

    def read(self) -> dict[str, float]:
        """Seconds by name: wall, cpu and node."""
        return {
            "wall": time.perf_counter() - self._wall,
            "cpu": time.process_time() - self._cpu,
            "node": self._node_seconds() - self._node_cpu,
        }


def peak_bytes() -> int:
    """Return the peak memory of this process in bytes."""
    # ru_maxrss is unsuitable: it begins with the parent's memory at the start of this process.
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


@dataclass(frozen=True)
class Measurement:
    """A measured value. Repeated ones share benchmark, quantity and unit; `goal` is shown in the same row."""

    benchmark: str
    quantity: str
    unit: str
    value: float
    goal: str = ""


def summarised(measurements: Iterable[Measurement]) -> pl.DataFrame:
    """Return one row per quantity, in the order of the first measurement: count, median, min and max over the runs."""
    value = pl.col("value")
    return (
        pl.DataFrame([asdict(measurement) for measurement in measurements])
        .group_by("benchmark", "quantity", "unit", "goal", maintain_order=True)
        .agg(pl.len().alias("runs"), median=value.median(), min=value.min(), max=value.max())
    )


def as_text(summary: pl.DataFrame) -> str:
    """Return the summary as an aligned table, values with four significant digits."""
    numbers = ("runs", "median", "min", "max")
    rows = [
        {name: _rounded(cell) if name in numbers[1:] else str(cell) for name, cell in row.items()}
        for row in summary.to_dicts()
    ]
    rows.insert(0, {name: name for name in summary.columns})
    widths = {name: max(len(row[name]) for row in rows) for name in summary.columns}
    return "\n".join(
        "  ".join(
            cell.rjust(widths[name]) if name in numbers else cell.ljust(widths[name]) for name, cell in row.items()
        ).rstrip()
        for row in rows
    )


def _rounded(value: float) -> str:
    """Format a value with four significant digits, and all digits before the decimal point."""
    magnitude = math.floor(math.log10(abs(value))) if value else 0
    return f"{value:,.{min(max(3 - magnitude, 0), 4)}f}"
