"""Control snapshots that tests and benchmarks write by hand."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from control.snapshot import TABLES as COPIED
from control.snapshot import ControlSnapshot
from pipelines.tables.sources import TABLES


def record(table: str, *values: Any, **named: Any) -> SimpleNamespace:
    """A row of a raw table: values in the order of its columns, others by name; columns that are left out are null."""
    columns = tuple(TABLES[table].schema())
    given = dict(zip(columns, values, strict=False)) | named
    assert given.keys() <= set(columns), f"{table} has no {given.keys() - set(columns)}"
    return SimpleNamespace(**dict.fromkeys(columns) | given)


def changed(row: Any, **values: Any) -> SimpleNamespace:
    """A copy of a row with other values."""
    return SimpleNamespace(**(row._asdict() if hasattr(row, "_asdict") else vars(row)) | values)


def snapshot_of(revision: int = 1, **tables: Iterable[Any]) -> ControlSnapshot:
    """A snapshot with these rows, by table without `control_`; other tables are empty."""
    given = {f"control_{name}": tuple(rows) for name, rows in tables.items()}
    revisions = {"control_revisions": (record("control_revisions", revision),)}
    return ControlSnapshot(dict.fromkeys(COPIED, ()) | revisions | given)


def with_tables(snapshot: ControlSnapshot, **tables: Iterable[Any]) -> ControlSnapshot:
    """The same snapshot with other rows, by table without `control_`."""
    given = {f"control_{name}": tuple(rows) for name, rows in tables.items()}
    return ControlSnapshot({**snapshot.tables, **given}, snapshot.manual_sources, snapshot.source_switches)
