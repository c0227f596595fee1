"""Files that tests copy, because making them takes longer than most tests."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import make_url

from control.settings import Settings, load_settings
from control.store import ControlStore, open_store, sqlite_file


def open_migrated(settings: Settings) -> ControlStore:
    """Open the control store, migrated; a new SQLite file is a copy of the process's template."""
    store, path = open_store(settings), sqlite_file(make_url(settings.control_url))
    if path is None or path.exists():
        store.migrate()
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o600)
        path.write_bytes(_migrated())
    return store


@cache
def _migrated() -> bytes:
    """Return the content of a migrated SQLite file."""
    with TemporaryDirectory() as folder:
        store = open_store(load_settings({"LEDGERMART_DATA_DIR": folder}))
        store.migrate()
        store.close()
        return (Path(folder) / "control.db").read_bytes()
