"""Builds of the marts over a million transfers and more, compared with hand-written SQL over the same raw tables.

The first build is a full one. The next ones add 10,000 transfers like a cycle, 1,000 more with a publication, and
agreeing readings of 10,000 holders at a past block. Each job runs in a separate process, for its processor time and
peak memory; dbt's process is forked from one that has parsed the project. After each build both results must be equal,
so that both do the same work.
"""

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psutil

from control.settings import load_settings
from pipelines.raw.database import open_warehouse
from tests.bench.handwritten import compute, expect_equal
from tests.bench.measurement import Clock, Measurement, peak_bytes
from tests.bench.transfers import ROWS_PER_BLOCK, add_rows, attest_past, make_warehouse, read_past, record_built
from tests.integration.dbt_runner import WITHOUT_VIEWS, Stores, Used, run_dbt
from warehouse.port import Warehouse

# Enough rows for every token to be minted and transferred.
LEAST_ROWS = 10_000
BLOCK = ROWS_PER_BLOCK
_REPEAT = 3
_MIB = 2**20
# The build of a cycle that only has new rows.
_LATER = ("run", "--exclude", *WITHOUT_VIEWS)


@dataclass(frozen=True)
class Size:
    """Numbers of transfers for the first build, a later one and a publication, and of holders read at a past block.

    Transfers come in whole blocks of 100.
    """

    rows: int = 1_000_000
    new: int = 10_000
    published: int = 1_000
    read: int = 10_000


class _Jobs:
    """The measured jobs over one folder, and their measurements."""

    def __init__(self, folder: Path, memory_mb: int, size: Size, measured: list[Measurement]) -> None:
        self.stores = Stores(folder / "scale")
        self.stores.folder.mkdir()
        self.results = self.stores.folder / "results.duckdb"
        self.memory_mb = memory_mb
        self.name = f"scale, {size.rows:,}"
        self.measured = measured

    def add(self, quantity: str, unit: str, value: float, goal: str = "") -> None:
        self.measured.append(Measurement(self.name, quantity, unit, value, goal))

    def add_used(self, quantity: str, used: Used, goal: str = "") -> None:
        self.add(f"{quantity}: CPU", "s", used.cpu, goal)
        self.add(f"{quantity}: wall", "s", used.wall)
        self.add(f"{quantity}: peak memory", "MiB", used.peak / _MIB)

    def build(self, *arguments: str) -> Used:
        used = run_dbt(self.stores, *arguments, memory_mb=self.memory_mb)
        record_built(self.stores.warehouse)
        return used

    def forget(self) -> None:
        """Leave the raw tables alone."""
        self.results.unlink(missing_ok=True)
        self.stores.marts.unlink(missing_ok=True)
        with open_warehouse(self.stores.warehouse) as connection:
            connection.execute("drop schema if exists intermediate cascade; drop schema if exists staging cascade")
            connection.execute("delete from raw.transforms")

    def by_hand(self, part: str) -> Used:
        used, _ = _alone(compute, self.stores.warehouse, self.results, part, self.memory_mb)
        return used


def run(
    folder: Path,
    repeat: int | None,
    note: Callable[[str], None],
    measured: list[Measurement],
    size: Size | None = None,
    memory_mb: int = 4096,
) -> None:
    """Build everything, then new rows, then publish new rows, `repeat` times each.

    Args:
        memory_mb: DuckDB's memory limit, of dbt as of the hand-written SQL, in megabytes.
    """
    size = size or Size()
    jobs = _Jobs(folder, memory_mb, size, measured)
    note(f"scale: making {size.rows:,} transfers")
    made, _ = _alone(make_warehouse, jobs.stores.warehouse, size.rows, memory_mb)
    jobs.add("making the raw tables", "s", made.wall, "a minute for 10,000,000")
    rows = size.rows

    for number in range(repeat or _REPEAT):
        jobs.forget()
        note(f"scale: building them by hand, run {number + 1}")
        history, current = jobs.by_hand("history"), jobs.by_hand("current")
        jobs.add_used("full build by hand", _together(history, current))
        note(f"scale: building them, run {number + 1}")
        used = jobs.build("run")
        jobs.add_used("full build", used)
        jobs.add("full build: CPU, times that by hand", "x", used.cpu / (history.cpu + current.cpu), "at most 1.5")
        expect_equal(jobs.results, jobs.stores.marts)
    jobs.add("size of the marts", "MiB", jobs.stores.marts.stat().st_size / _MIB)

    for number in range(repeat or _REPEAT):
        note(f"scale: {size.new:,} new transfers, run {number + 1}")
        add_rows(jobs.stores.warehouse, size.rows, rows, size.new)
        rows += size.new
        jobs.add_used(f"{size.new:,} new by hand, history alone", jobs.by_hand("history"))
        jobs.add_used(f"{size.new:,} new by hand, current state", jobs.by_hand("current"))
        jobs.add_used(f"{size.new:,} new", jobs.build(*_LATER), "CPU 3 s, 1 GiB")
        expect_equal(jobs.results, jobs.stores.marts)

    for number in range((repeat or _REPEAT) if size.published else 0):
        note(f"scale: {size.published:,} new transfers and a publication, run {number + 1}")
        add_rows(jobs.stores.warehouse, size.rows, rows, size.published)
        rows += size.published
        jobs.add_used(f"{size.published:,} new", jobs.build(*_LATER))
        used, written = _alone(_publish, jobs.stores.marts)
        jobs.add_used(f"publication of {size.published:,} new", used, "below 1.5 s")
        share = 100 * written / jobs.stores.marts.stat().st_size
        jobs.add("  of it: bytes written, of the marts", "%", share, "at most 5")

    if size.read:
        note(f"scale: {size.read:,} readings of a past block")
        read_past(jobs.stores.warehouse, size.rows, size.read)
        jobs.add_used(f"{size.read:,} agreeing readings of a past block", jobs.build(*_LATER), "CPU 3 s")
        note("scale: the record of its attestation")
        used, _ = _alone(attest_past, jobs.stores.warehouse, size.rows)
        jobs.add_used("what an attestation of the block lists and records", used)
        jobs.add_used("the build that shows its record", jobs.build(*_LATER), "CPU 3 s")


def _together(first: Used, second: Used) -> Used:
    return Used(first.wall + second.wall, first.cpu + second.cpu, max(first.peak, second.peak))


def _alone(job: Callable[..., None], *arguments: object) -> tuple[Used, int]:
    """Run a job in a separate process; return its resource usage, and the bytes written to disk."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_observed, job, arguments).result()


def _observed(job: Callable[..., None], arguments: tuple[object, ...]) -> tuple[Used, int]:
    clock = Clock()
    job(*arguments)
    read = clock.read()
    return Used(read["wall"], read["cpu"], peak_bytes()), psutil.Process().io_counters().write_bytes


def _publish(marts: Path) -> None:
    """Publish the marts from where the product has them."""
    settings = load_settings({"LEDGERMART_DATA_DIR": str(marts.parent)})
    if not settings.marts_path.exists():
        os.link(marts, settings.marts_path)
    Warehouse(settings).publish(1, 0, 0)
