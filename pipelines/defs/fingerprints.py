"""Digests of code, dbt project and definitions: whether they changed since a process loaded them, or since a build."""

import hashlib
from pathlib import Path

import duckdb

from control.resources import DBT_PROJECT, PACKAGES
from control.settings import Settings
from pipelines.raw.database import movement_views

_SUFFIXES = (".py", ".sql", ".toml")
_FOLDERS = ("control", "figures", "pipelines", "warehouse")


def project_files(folder: Path = DBT_PROJECT) -> list[Path]:
    """Return the files of the project, without the files that dbt writes beside them when it runs there."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.suffix in (".sql", ".py", ".yml", ".yaml", ".csv", ".md")
        and path.relative_to(folder).parts[0] not in ("target", "logs")
    )


def project_fingerprint() -> str:
    """Return a digest of the project's files, of the views that it reads, and of the figures that it computes."""
    digest = hashlib.sha256(movement_views().encode())
    files = [(DBT_PROJECT.parent, path) for path in project_files()]
    files += [(PACKAGES, path) for path in sorted((PACKAGES / "figures").rglob("*.py"))]
    for folder, path in files:
        digest.update(str(path.relative_to(folder)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def loaded_fingerprint(settings: Settings) -> str:
    """Return a digest of names, sizes and times of change, and of installed packages; cheap enough for each run."""
    files = [path for folder in _FOLDERS for path in (PACKAGES / folder).rglob("*") if path.suffix in _SUFFIXES]
    files += project_files(DBT_PROJECT)
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
