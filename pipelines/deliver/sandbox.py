"""Sandboxes: an analyst's own copy of the warehouse and of the marts, to build models in while the service runs.

A sandbox is a folder, and only its owner opens the files in it:

- `*.duckdb`: the copies, named as in `warehouse.copies`; dbt builds in that of the marts
- `state/`: dbt's manifest of the published marts, in database `published`: for --state and --defer
- `sandbox.json`: origin and time of the copies
- `environment.sh`: the variables that point dbt at the sandbox, for `source`

Warehouse and marts are copied together while no cycle runs, so that incremental models continue from them.
"""

import json
import shlex
import shutil
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from control.clock import utc_now
from control.settings import Settings
from pipelines.tables.families import DERIVED_TABLES
from warehouse.copies import Listener, check_unused, open_copy
from warehouse.folders import FolderError, new_folder
from warehouse.port import Warehouse


class SandboxError(FolderError):
    """A sandbox cannot be made, renewed or removed; the message says why and what to do."""


@dataclass(frozen=True)
class Sandbox:
    """One sandbox.

    Attributes:
        version: the published version in it.
        batch_id: the cycle of its raw rows.
        is_reflinked: whether its files share their blocks with the warehouse's until either changes.
    """

    name: str
    folder: Path
    version: int
    batch_id: int
    created_at: datetime
    is_reflinked: bool

    @property
    def variables(self) -> dict[str, str]:
        """Return the variables that point dbt at the sandbox."""
        return {
            "LEDGERMART_SANDBOX": str(self.folder),
            "DBT_TARGET_PATH": str(self.folder / "target"),
            "DBT_LOG_PATH": str(self.folder / "logs"),
            "DBT_STATE": str(self.folder / "state"),
        }

    def as_json(self) -> dict[str, Any]:
        """Return the sandbox as `ledgermart sandbox --json` prints it."""
        return {
            "name": self.name,
            "folder": str(self.folder),
            "version": self.version,
            "batch": self.batch_id,
            "createdAt": self.created_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "isReflinked": self.is_reflinked,
            "variables": self.variables,
        }


def make_sandbox(settings: Settings, folder: Path, *, refresh: bool, listener: Listener) -> Sandbox:
    """Make a sandbox, or replace an existing one with a new copy.

    Wait until no cycle runs. The next cycle waits while the files are copied.

    Args:
        folder: path of the sandbox; its last part is the name.
        refresh: replace the existing sandbox, with everything built in it.

    Raises:
        SandboxError: the sandbox exists already.
        FolderError: nothing is published yet, the sandbox is in use, or the disk is too small.
        FolderBusyError: another process is making it.
    """
    if folder.exists() and not refresh:
        raise SandboxError(f"{folder} already exists; --refresh replaces it, and everything built in it is lost")
    _check_replaceable(folder)
    with new_folder(folder) as partial:
        with Warehouse(settings).copy_for(partial, listener) as copy:
            manifest = json.loads(_manifest_text(settings))
        _remove_descriptors(partial)
        _write_state(manifest, partial / "state")
        created_at = utc_now().replace(microsecond=0)
        version, batch_id = copy.publication.version, _newest_batch(partial)
        made = Sandbox(folder.name, folder, version, batch_id, created_at, copy.is_reflinked)
        _write_description(made, partial)
    return made


def list_sandboxes(parent: Path) -> list[Sandbox]:
    """Return the sandboxes in a folder, by name."""
    return [
        _read(path.parent) for path in sorted(parent.glob("*/sandbox.json")) if not path.parent.name.startswith(".")
    ]


def remove_sandbox(folder: Path) -> None:
    """Remove a sandbox and everything built in it.

    Raises:
        SandboxError: there is no sandbox, or it is in use.
    """
    if not folder.exists():
        raise SandboxError(f"there is no sandbox {folder}")
    _check_replaceable(folder)
    # Rename it first, so that a kill leaves no incomplete sandbox under the name.
    doomed = folder.with_name(f".{folder.name}.former")
    shutil.rmtree(doomed, ignore_errors=True)
    folder.rename(doomed)
    shutil.rmtree(doomed)


def _check_replaceable(folder: Path) -> None:
    """Raise an error if the folder is no sandbox, or if another process has its files open."""
    if not folder.exists():
        return
    if not (folder / "sandbox.json").is_file():
        raise SandboxError(f"{folder} is not a sandbox: it has no sandbox.json; name another folder")
    check_unused(folder)


def _remove_descriptors(folder: Path) -> None:
    """Remove the whole descriptors of wallets, and what derives from them, from the copy: models do not need them.

    Deleted bytes may remain in the file.
    """
    with open_copy(folder, read_only=False) as connection:
        columns = "from duckdb_columns() where table_name = 'control_subjects' and column_name = 'descriptor'"
        if connection.execute(columns).fetchone() is not None:
            connection.execute("update raw.control_subjects set descriptor = null where descriptor is not null")
        for table in DERIVED_TABLES:
            connection.execute(f"drop table if exists raw.{table}")


def _newest_batch(folder: Path) -> int:
    """Return the newest cycle in the copy."""
    with open_copy(folder) as connection:
        row = connection.execute("select coalesce(max(batch_id), 0) from raw.batches").fetchone()
    assert row is not None
    return int(row[0])


def _manifest_text(settings: Settings) -> str:
    path = settings.manifest_path
    if not path.exists():
        raise SandboxError(f"dbt's manifest of the published version is missing: {path}; run `ledgermart cycle`")
    return path.read_text()


def _write_state(manifest: dict[str, Any], folder: Path) -> None:
    """Write the manifest, with the marts in the database that has the published ones in a sandbox."""
    for node in manifest["nodes"].values():
        if node.get("database") == "marts_db":
            node["database"] = "published"
            node["relation_name"] = (node["relation_name"] or "").replace('"marts_db"', '"published"', 1) or None
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps(manifest))


def _write_description(made: Sandbox, folder: Path) -> None:
    described = {**asdict(made), "folder": str(made.folder), "created_at": made.created_at.isoformat()}
    (folder / "sandbox.json").write_text(json.dumps(described, indent=2) + "\n")
    lines = (f"export {name}={shlex.quote(value)}\n" for name, value in made.variables.items())
    (folder / "environment.sh").write_text("".join(lines))


def _read(folder: Path) -> Sandbox:
    fields = json.loads((folder / "sandbox.json").read_text())
    created_at = datetime.fromisoformat(fields["created_at"])
    return Sandbox(folder.name, folder, fields["version"], fields["batch_id"], created_at, fields["is_reflinked"])
