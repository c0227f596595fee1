"""What tells the code, the dbt project and the definitions that the worker has loaded from those that are there now."""

import hashlib
from pathlib import Path

import duckdb

from control.settings import CHECKOUT, Settings

_SUFFIXES = (".py", ".sql", ".toml", ".yml", ".yaml", ".csv", ".md")
_FOLDERS = ("control", "dbt_project", "pipelines", "warehouse")
# What dbt writes beside the project, when somebody runs it there, is no part of it.
_WRITTEN = ("dbt_project/target", "dbt_project/logs")


def loaded_fingerprint(settings: Settings) -> str:
    """A digest of names, sizes and times of change: cheap enough for each run. Also of what is installed."""
    written = tuple(str(CHECKOUT / folder) + "/" for folder in _WRITTEN)
    files = [
        path
        for folder in _FOLDERS
        for path in (CHECKOUT / folder).rglob("*")
        if path.suffix in _SUFFIXES and not str(path).startswith(written)
    ]
    digest = hashlib.sha256()
    for path in sorted([*files, settings.networks_file, settings.price_sources_file, Path(duckdb.__file__).parents[1]]):
        try:
            found = path.stat()
        except FileNotFoundError:
            # Editors and updates take a file away for a moment.
            digest.update(f"{path} is not there\n".encode())
        else:
            digest.update(f"{path} {found.st_size} {found.st_mtime_ns}\n".encode())
    return digest.hexdigest()
