"""Sandboxes: an analyst's own copy of the warehouse and of the marts, to build models in while the service runs.

A sandbox is a folder, and nothing but its owner ever opens the files in it:

    warehouse.duckdb    raw, staging and intermediate, as the last cycle left them; the views in it name their file,
                        hence its name
    marts_db.duckdb     the marts that follow from them; dbt builds here
    published.duckdb    the version in force, never changed: to compare with, and to defer to
    state/              dbt's manifest of what is published, its marts in `published`: for --state and --defer
    sandbox.json        what this was made from, and when
    environment.sh      the variables that point dbt at it, for `source`

Warehouse and marts are copied together while no cycle is at work, so that incremental models go on from them.
"""

import errno
import fcntl
import json
import os
import shlex
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from control.settings import Settings
from warehouse.folders import FolderError, new_folder
from warehouse.lock import copy_lock
from warehouse.opening import connect
from warehouse.versions import Publication, current_publication

_MANIFEST = Path("dbt") / "target" / "manifest.json"
# linux/fs.h: share the blocks of another file instead of copying them, where the file system can.
_FICLONE = 0x40049409
_CANNOT_CLONE = {errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EPERM}
_CHUNK = 16 * 1024 * 1024


class SandboxError(FolderError):
    """A sandbox cannot be made, renewed or removed; the message says why and what to do."""


@dataclass(frozen=True)
class Sandbox:
    """One sandbox.

    Attributes:
        version: the published version in it.
        batch_id: the cycle that its raw rows are from.
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
        """The variables that point dbt at it."""
        return {
            "LEDGERMART_SANDBOX": str(self.folder),
            "DBT_TARGET_PATH": str(self.folder / "target"),
            "DBT_LOG_PATH": str(self.folder / "logs"),
            "DBT_STATE": str(self.folder / "state"),
        }

    def as_json(self) -> dict[str, Any]:
        """The sandbox as `ledgermart sandbox --json` prints it."""
        return {
            "name": self.name,
            "folder": str(self.folder),
            "version": self.version,
            "batch": self.batch_id,
            "createdAt": self.created_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "isReflinked": self.is_reflinked,
            "variables": self.variables,
        }


@dataclass(frozen=True)
class Listener:
    """Who is told how it goes.

    Attributes:
        waits: in words, for which writer.
        begins: bytes to copy in all.
        copied: bytes copied since the last word.
    """

    waits: Callable[[str], None]
    begins: Callable[[int], None]
    copied: Callable[[int], None]


def make_sandbox(settings: Settings, folder: Path, *, refresh: bool, listener: Listener) -> Sandbox:
    """Make a sandbox, or make it anew from what is there now.

    Waits until no cycle is at work, and holds up the next one while the files are copied.

    Args:
        folder: its place; its last part is its name.
        refresh: take the place of the sandbox that is there, with all that was built in it.

    Raises:
        SandboxError: nothing is published yet, it exists already, is in use, or the disk is too small.
        FolderBusyError: another process is making it.
    """
    if folder.exists() and not refresh:
        raise SandboxError(f"{folder} exists already; --refresh makes it anew, and what was built in it is lost")
    _check_replaceable(folder)
    _published(settings)
    with new_folder(folder) as partial:
        with copy_lock(settings.lock_path, listener.waits):
            publication = _published(settings)
            batch_id = _newest_batch(settings.warehouse_path)
            is_reflinked = _copy_stores(settings, partial, listener)
            _link(settings.serving_dir / publication.file, partial / "published.duckdb")
            manifest = json.loads(_manifest_text(settings))
        for name in ("warehouse.duckdb", "marts_db.duckdb"):
            # Opening takes in what a killed cycle left beside the file.
            duckdb.connect(str(partial / name)).close()
        _write_state(manifest, partial / "state")
        made = Sandbox(
            folder.name, folder, publication.version, batch_id, datetime.now(UTC).replace(microsecond=0), is_reflinked
        )
        _write_description(made, partial)
    return made


def list_sandboxes(parent: Path) -> list[Sandbox]:
    """The sandboxes in a folder, by name."""
    return [
        _read(path.parent) for path in sorted(parent.glob("*/sandbox.json")) if not path.parent.name.startswith(".")
    ]


def remove_sandbox(folder: Path) -> None:
    """Remove a sandbox and all that was built in it.

    Raises:
        SandboxError: there is none, or it is in use.
    """
    if not folder.exists():
        raise SandboxError(f"there is no sandbox {folder}")
    _check_replaceable(folder)
    # Not half of it remains under its name when this is killed.
    doomed = folder.with_name(f".{folder.name}.former")
    shutil.rmtree(doomed, ignore_errors=True)
    folder.rename(doomed)
    shutil.rmtree(doomed)


def _check_replaceable(folder: Path) -> None:
    """Refuse a folder that is no sandbox, or whose files another process has open."""
    if not folder.exists():
        return
    if not (folder / "sandbox.json").is_file():
        raise SandboxError(f"{folder} is not a sandbox: it has no sandbox.json; name another folder")
    for name in ("warehouse.duckdb", "marts_db.duckdb"):
        try:
            connect(folder / name, wait_seconds=0).close()
        except duckdb.IOException as error:
            raise SandboxError(f"{folder / name} is in use; close what has it open ({error})") from error


def _published(settings: Settings) -> Publication:
    publication = current_publication(settings.serving_dir)
    if publication is None:
        raise SandboxError(f"nothing is published in {settings.serving_dir}; run `ledgermart init --tenant NAME`")
    return publication


def _newest_batch(warehouse: Path) -> int:
    """The newest cycle in the warehouse; also waits for a child of a killed writer that still has it open."""
    with closing(connect(warehouse, read_only=True)) as connection:
        row = connection.execute("select coalesce(max(batch_id), 0) from raw.batches").fetchone()
    assert row is not None
    return int(row[0])


def _copy_stores(settings: Settings, target: Path, listener: Listener) -> bool:
    """Copy warehouse and marts, with what is still beside them; whether by sharing their blocks."""
    pairs = [
        (source.with_name(source.name + suffix), target / (name + suffix))
        for source, name in ((settings.warehouse_path, "warehouse.duckdb"), (settings.marts_path, "marts_db.duckdb"))
        for suffix in ("", ".wal")
        if source.with_name(source.name + suffix).exists()
    ]
    sizes = [source.stat().st_size for source, _ in pairs]
    listener.begins(sum(sizes))
    are_reflinked = []
    for (source, copy), size in zip(pairs, sizes, strict=True):
        is_reflinked = _reflink(source, copy)
        if is_reflinked:
            listener.copied(size)
        else:
            _check_space(target, size)
            _stream(source, copy, listener.copied)
        are_reflinked.append(is_reflinked)
    return all(are_reflinked)


def _reflink(source: Path, copy: Path) -> bool:
    """Share the blocks of a file, which takes no time; False where the file system cannot."""
    with source.open("rb") as read, copy.open("wb") as written:
        try:
            fcntl.ioctl(written.fileno(), _FICLONE, read.fileno())
        except OSError as error:
            if error.errno in _CANNOT_CLONE:
                return False
            raise
    return True


def _check_space(folder: Path, size: int) -> None:
    free = shutil.disk_usage(folder).free
    if size > free:
        raise SandboxError(f"{folder.parent} has {free:,} bytes free, and {size:,} are needed; name another with --dir")


def _stream(source: Path, copy: Path, copied: Callable[[int], None]) -> None:
    with source.open("rb") as read, copy.open("wb") as written:
        while count := os.sendfile(written.fileno(), read.fileno(), None, _CHUNK):
            copied(count)


def _link(source: Path, link: Path) -> None:
    """A second name of a published file, which outlives the version's removal; on another disk a copy."""
    try:
        link.hardlink_to(source)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK):
            raise
        shutil.copyfile(source, link)


def _manifest_text(settings: Settings) -> str:
    path = settings.data_dir / _MANIFEST
    if not path.exists():
        raise SandboxError(f"dbt's manifest of what is published is missing, {path}; run `ledgermart cycle`")
    return path.read_text()


def _write_state(manifest: dict[str, Any], folder: Path) -> None:
    """Write the manifest with the marts where a sandbox has the published ones."""
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
