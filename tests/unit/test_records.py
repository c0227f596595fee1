"""Dagster's records are written without waiting for the disk, and those of others as they were."""

from pathlib import Path

from sqlalchemy import create_engine, text

from pipelines.defs.records import do_not_wait_for_disk

_FULL, _NORMAL = 2, 1


def synchronous(path: Path) -> int:
    """How an engine writes a database."""
    engine = create_engine(f"sqlite:///{path}")
    try:
        with engine.connect() as connection:
            return int(connection.execute(text("pragma synchronous")).scalar_one())
    finally:
        engine.dispose()


def test_records_behind_a_symbolic_link_are_found(tmp_path: Path) -> None:
    (tmp_path / "disk" / "dagster").mkdir(parents=True)
    (tmp_path / "data").symlink_to(tmp_path / "disk")
    folder = tmp_path / "data" / "dagster"
    do_not_wait_for_disk(folder)
    assert synchronous(folder / "runs.db") == _NORMAL
    assert synchronous(tmp_path / "data" / "control.db") == _FULL
