"""What tells the code, the dbt project and the definitions that the worker has loaded from those that are there now."""

import hashlib
from pathlib import Path

import duckdb

from control.settings import CHECKOUT, Settings
from pipelines.defs.project import PROJECT_DIR, project_files

_SUFFIXES = (".py", ".sql", ".toml")
_FOLDERS = ("control", "pipelines", "warehouse")


def loaded_fingerprint(settings: Settings) -> str:
    """A digest of names, sizes and times of change: cheap enough for each run. Also of what is installed."""
    files = [path for folder in _FOLDERS for path in (CHECKOUT / folder).rglob("*") if path.suffix in _SUFFIXES]
    files += project_files(CHECKOUT / PROJECT_DIR.name)
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
