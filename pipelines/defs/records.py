"""Dagster's records of runs: finding and repairing damage."""

import shutil
from pathlib import Path

from control.store import find_damage

RESTART = "restart the service, which begins new records of runs"


def find_damaged(folder: Path) -> Path | None:
    """Return a database of Dagster's that is damaged or empty; None if all are whole, or there are none."""
    return next((path for path in sorted(folder.glob("*.db")) if find_damage(path)), None)


def set_aside_damaged(folder: Path) -> Path | None:
    """Rename the folder of Dagster's records if one is damaged, so that Dagster begins new ones.

    They are records of runs alone: no data is lost. Only one earlier folder is kept. No other process may use them.

    Returns:
        The damaged database, under its former name; None if all are whole.
    """
    damaged = find_damaged(folder)
    if damaged is None:
        return None
    aside = folder.with_name(f"{folder.name}.damaged")
    shutil.rmtree(aside, ignore_errors=True)
    folder.rename(aside)
    folder.mkdir(mode=0o700)
    return damaged
