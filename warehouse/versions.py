"""Publishing: copy the marts to an immutable file for each version, then move the pointer to it.

Where the file system supports it, the copy shares blocks with the marts, so later builds write only changed blocks.

`marts-<version>.duckdb` never changes once its name exists. `current.json` names the version in force for the API.
`current.duckdb` is the same file under a stable name, for tools that reopen the file for each query. Both are replaced
by rename, so that a reader always sees either the old or the new version.
"""

import json
import os
import re
import shutil
import uuid
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import duckdb

from control.clock import stored_now, utc_now
from warehouse.copies import reflink
from warehouse.damage import check_length
from warehouse.folders import read_json, sync
from warehouse.opening import connect, quiet

_PUBLICATION_COMMENTS = """
    comment on table marts.publication is 'The published version. Grain: one row.';
    comment on column marts.publication.version is 'Number of the version; each has one more. Unit: none, a key.';
    comment on column marts.publication.batch_id is 'The newest cycle whose rows are in it. Unit: none, a key.';
    comment on column marts.publication.built_at is 'When it was made, UTC.';
    comment on column marts.publication.epoch is 'The epoch of the installation. Unit: none, a key.';
"""
_READER_THREADS = 2
_NAME = re.compile(r"marts-(\d{12})\.duckdb")
# A pointer has about 200 bytes. File names of versions have 12 digits, and the next number must fit, too.
_MOST_POINTER_BYTES = 4096
_MOST_NUMBER = 10**11


@dataclass(frozen=True)
class Publication:
    """The version in force."""

    version: int
    file: str
    published_at: datetime


@dataclass(frozen=True)
class _Pointer:
    """Content of `current.json`: version in force, epoch, newest cycle, and revision of the control store.

    Fields that earlier releases did not write are empty or 0.
    """

    publication: Publication
    epoch: str
    batch_id: int
    control_revision: int


class SharingError(Exception):
    """The store of versions or the control store did not do its work; the message holds no credentials."""


class Publisher(Protocol):
    """Serves versions of one shard to API nodes on other machines."""

    def newest(self) -> tuple[int, str] | None:
        """Return number and pointer of the version in force; None before the first."""

    def newest_switch(self) -> int:
        """Return the newest version that is the first one with a tenant that moved to the shard; 0 without one."""

    def put_in_force(self, path: Path, publication: Publication, pointer: str, before: int | None) -> None:
        """Store a version's file, and put the version in force in place of `before`.

        Raises:
            SharingError: the version is not served, or this process does not know whether it is.
        """


def current_publication(serving_dir: Path) -> Publication | None:
    """Return the version in force; None if nothing is published.

    If the pointer or its file is lost, fall back to the newest version on disk. Readers then keep working.
    """
    versions = published_versions(serving_dir)
    named = _find_pointer(serving_dir)
    if named is not None and named.version in versions:
        return named
    newest = max((version for version in versions if named is None or version < named.version), default=None)
    if newest is None:
        return None
    path = versions[newest]
    return Publication(newest, path.name, published_at(path))


def newest_is_readable(serving_dir: Path) -> bool:
    """Return whether the pointer can be read and its file opened; if not, a new version must be published."""
    named = _find_pointer(serving_dir)
    path = None if named is None else published_versions(serving_dir).get(named.version)
    if path is None:
        return False
    try:
        with closing(duckdb.connect(str(path), read_only=True)) as connection:
            check_length(connection, path)
    except duckdb.IOException:
        return False
    return True


class PointerError(Exception):
    """The pointer cannot be read; the message says why."""


def read_pointer(serving_dir: Path) -> Publication:
    """Read the pointer to the version that was published last.

    Raises:
        PointerError: the pointer is missing or damaged.
    """
    return _read_pointer(serving_dir).publication


def current_epoch(serving_dir: Path) -> str | None:
    """Return the epoch that the pointer names; None if it names none or cannot be read."""
    try:
        return _read_pointer(serving_dir).epoch or None
    except PointerError:
        return None


def _read_pointer(serving_dir: Path) -> _Pointer:
    try:
        return _parse_pointer(read_json(serving_dir / "current.json", _MOST_POINTER_BYTES))
    except FileNotFoundError as error:
        raise PointerError("current.json is missing") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise PointerError("current.json cannot be read") from error


def _parse_pointer(fields: Any) -> _Pointer:
    version, at = fields["version"], datetime.fromisoformat(fields["publishedAt"])
    pointer = _Pointer(
        Publication(version, path_of(Path(), version).name, at),
        str(fields.get("epoch", "")),
        fields.get("batchId", 0),
        fields.get("controlRevision", 0),
    )
    numbers = (version, pointer.batch_id, pointer.control_revision)
    if any(type(number) is not int or not 0 <= number < _MOST_NUMBER for number in numbers):
        raise ValueError("a number is out of range")
    if at.tzinfo is None or fields["file"] != pointer.publication.file:
        raise ValueError("time or file are not those of a publication")
    return pointer


def _find_pointer(serving_dir: Path) -> Publication | None:
    try:
        return read_pointer(serving_dir)
    except PointerError:
        return None


def _pointers(serving_dir: Path, served: tuple[int, str] | None, *, is_shared: bool) -> list[_Pointer]:
    """Return the pointers that the next version continues; none if the one that readers use is missing.

    The control store decides for shared versions. A pointer in the folder, if there is one, must agree with it: the
    control store may have been restored.
    """
    found = []
    if is_shared:
        if served is None:
            return []
        found.append(_parse_pointer(json.loads(served[1])))
    try:
        found.append(_read_pointer(serving_dir))
    except PointerError:
        return found
    return found


def _epoch(pointers: Sequence[_Pointer], batch_id: int, control_revision: int, recorded: int) -> str:
    """Return the epoch of the next publication: that of the pointers, or a new one.

    A new epoch begins if the pointer is lost, or if warehouse or control store are older than a pointer says. They
    were restored then, and numbers that clients know will be reused for other data. One unrecorded version is no sign
    of a restore: its publication was killed before the warehouse recorded it.
    """
    epochs = {before.epoch for before in pointers}
    is_continued = all(
        recorded >= before.publication.version - 1
        and batch_id >= before.batch_id
        and control_revision >= before.control_revision
        for before in pointers
    )
    return epochs.pop() if is_continued and len(epochs) == 1 and all(epochs) else uuid.uuid4().hex


def epoch_of(connection: duckdb.DuckDBPyConnection) -> str:
    """Return the epoch in which a version was published; empty if an earlier release published it."""
    try:
        row = connection.execute("select epoch from marts.publication").fetchone()
    except (duckdb.CatalogException, duckdb.BinderException):
        return ""
    return str(row[0]) if row else ""


def tenant_versions_of(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Return each tenant's data version in a published version; empty if an earlier release published it."""
    try:
        rows = connection.execute(
            "select tenant_id, max(data_version) from marts.tenant_versions group by tenant_id"
        ).fetchall()
    except (duckdb.CatalogException, duckdb.BinderException):
        return {}
    return dict(rows)


def _readable(serving_dir: Path) -> int:
    """Return the mode of a read-only file for the same readers as its folder."""
    return 0o400 | (serving_dir.stat().st_mode & 0o040)


def move_pointer(serving_dir: Path, text: str) -> None:
    """Replace the content of `current.json`."""
    _replace_text(serving_dir / "current.json", text)


def protect(path: Path) -> None:
    """Make a version's file read-only, for the same readers as its folder."""
    path.chmod(_readable(path.parent))


def _replace_text(path: Path, text: str) -> None:
    beside = path.with_suffix(".tmp")
    beside.write_text(text)
    beside.chmod(0o200 | _readable(path.parent))
    sync(beside)
    beside.replace(path)


def path_of(serving_dir: Path, version: int) -> Path:
    """Return the path of a version's file, which need not exist."""
    return serving_dir / f"marts-{version:012d}.duckdb"


def published_at(path: Path) -> datetime:
    """Return the time of publication from the file's modification time, for versions that the pointer does not name."""
    return datetime.fromtimestamp(int(path.stat().st_mtime), UTC)


def open_locked_down(path: Path, memory_megabytes: int) -> duckdb.DuckDBPyConnection:
    """Open a version for a service: read-only, without access to other files, within a memory limit.

    Raises:
        duckdb.IOException: the file cannot be opened.
    """
    connection = duckdb.connect(
        str(path),
        read_only=True,
        config={
            "memory_limit": f"{memory_megabytes}MB",
            "threads": _READER_THREADS,
            "enable_external_access": "false",
            # Disable the loop join that DuckDB prefers for few rows: joining 120 moments with 500,000 prices takes
            # 3 s by the loop, and 0.1 s by sorting.
            "asof_loop_join_threshold": "0",
            # Find the first rows by the columns of the order alone, then read the other columns for these rows only.
            # DuckDB does so up to 50 rows by default. The first 1,000 of 280,000 holders take 15 ms in place of 50 ms.
            "late_materialization_max_rows": "2048",
        },
    )
    return quiet(connection, locked_down=True)


def published_versions(serving_dir: Path) -> dict[int, Path]:
    """Return the files of all versions on disk, by version."""
    return {
        int(match[1]): path
        for path in sorted(serving_dir.glob("marts-*.duckdb"))
        if (match := _NAME.fullmatch(path.name))
    }


def publish(
    marts_path: Path,
    serving_dir: Path,
    batch_id: int,
    recorded: int = 0,
    control_revision: int = 0,
    publisher: Publisher | None = None,
) -> Publication:
    """Copy the marts to a new version and point readers at it.

    The new number is one above the highest number in pointers, files and records, and above the first version of each
    tenant that moved here. So a number is never reused, even if some of them were lost. If the process is killed before
    the pointer moves, an unnamed file remains; it is removed like an old version.

    A shared version is in force for API nodes before the pointer in the folder moves. If the process is killed in
    between, the next publication continues from the version in force.

    Args:
        marts_path: the build file of the marts.
        serving_dir: folder of the published versions.
        batch_id: the newest cycle with rows in the marts.
        recorded: the newest version that the warehouse has recorded.
        control_revision: the newest revision of the control store in the marts.
        publisher: serves the version to API nodes on other machines; None if they read the folder.

    Raises:
        SharingError: the publisher did not put the version in force; the folder's pointer did not move.
    """
    serving_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    served = publisher.newest() if publisher else None
    named = _find_pointer(serving_dir)
    known = (
        recorded,
        named.version if named else 0,
        served[0] if served else 0,
        publisher.newest_switch() if publisher else 0,
    )
    version = max(*known, *published_versions(serving_dir)) + 1
    name = path_of(serving_dir, version).name
    pointers = _pointers(serving_dir, served, is_shared=publisher is not None)
    epoch = _epoch(pointers, batch_id, control_revision, recorded)
    connection = connect(marts_path)
    try:
        before = _served_before_build(connection, served)
        connection.execute("create schema if not exists marts")
        connection.execute(
            "create or replace table marts.publication as select ?::bigint as version, ?::bigint as batch_id, "
            "?::timestamp as built_at, ?::varchar as epoch",
            [version, batch_id, stored_now(), epoch],
        )
        connection.execute(_PUBLICATION_COMMENTS)
        connection.execute("force checkpoint")
    finally:
        connection.close()
    beside = serving_dir / f".{name}.tmp"
    # A killed publication may have left this file, and made it read-only already.
    beside.unlink(missing_ok=True)
    if not reflink(marts_path, beside):
        shutil.copyfile(marts_path, beside)
    sync(beside)
    beside.chmod(_readable(serving_dir))
    # Unlike a rename, a link never overwrites an existing file.
    os.link(beside, serving_dir / name)
    beside.unlink()
    publication = Publication(version, name, utc_now().replace(microsecond=0))
    pointer = json.dumps(
        {
            "version": version,
            "file": name,
            "publishedAt": publication.published_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "epoch": epoch,
            "batchId": batch_id,
            "controlRevision": control_revision,
        }
    )
    if publisher is not None:
        try:
            publisher.put_in_force(serving_dir / name, publication, pointer, before)
        except SharingError:
            (serving_dir / name).unlink()
            raise
    move_pointer(serving_dir, pointer)
    stable = serving_dir / ".current.tmp"
    stable.unlink(missing_ok=True)
    os.link(serving_dir / name, stable)
    stable.replace(serving_dir / "current.duckdb")
    sync(serving_dir)
    return publication


def mark_build(connection: duckdb.DuckDBPyConnection, token: str, served: int | None) -> str | None:
    """Store the token of a build, and the version in force at its start, in the build file.

    Returns:
        The token of the previous build; None if there was none.
    """
    connection.execute("create table if not exists main.build (token varchar)")
    before = connection.execute("select max(token) from main.build").fetchone()
    connection.execute("create or replace table main.build as select ? as token, ?::bigint as served", [token, served])
    return None if before is None else before[0]


def _served_before_build(connection: duckdb.DuckDBPyConnection, served: tuple[int, str] | None) -> int | None:
    """Return the version in force when the build began, or the present one if the build file does not name it."""
    try:
        row = connection.execute("select served from main.build").fetchone()
    except (duckdb.CatalogException, duckdb.BinderException):
        row = None
    if row is not None:
        return None if row[0] is None else int(row[0])
    return None if served is None else served[0]


def megabytes_needed(serving_dir: Path, pinned: Collection[int]) -> int:
    """Return the megabytes of versions that cannot be removed, rounded up; 0 if pins protect no additional version."""
    current = current_publication(serving_dir)
    kept = published_versions(serving_dir)
    if current is None or not any(version in pinned for version in kept if version < current.version - 1):
        return 0
    size = sum(_size(path) for version, path in kept.items() if version >= current.version - 1 or version in pinned)
    return -(-size // 1_000_000)


def megabytes_held(serving_dir: Path, pinned: Collection[int]) -> int:
    """Return the megabytes of versions that only pins protect from removal, rounded up."""
    current = current_publication(serving_dir)
    if current is None:
        return 0
    kept = published_versions(serving_dir)
    size = sum(_size(path) for version, path in kept.items() if version < current.version - 1 and version in pinned)
    return -(-size // 1_000_000)


def _size(path: Path) -> int:
    """Return the bytes of a file; 0 if it was removed meanwhile, since readers do not lock versions."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def remove_old_versions(
    serving_dir: Path,
    grace_seconds: int,
    budget_bytes: int,
    pinned: Collection[int] = (),
    now: datetime | None = None,
) -> list[int]:
    """Remove old versions and leftovers of killed processes; return the numbers of the removed versions.

    A version is removed when its grace period after being superseded ends. If the versions exceed the disk budget, the
    oldest are removed earlier. The version in force, the one before it (for requests in flight) and pinned versions
    always stay.
    """
    current = current_publication(serving_dir)
    if current is None:
        return []
    versions = published_versions(serving_dir)
    superseded_at = {
        version: versions[follower].stat().st_mtime
        for version, follower in zip(sorted(versions), sorted(versions)[1:], strict=False)
    }
    removable = [version for version in sorted(versions) if version < current.version - 1 and version not in pinned]
    moment = (now or utc_now()).timestamp()
    size = sum(path.stat().st_size for path in versions.values())
    removed = []
    for version in removable:
        is_old = abs(moment - superseded_at[version]) > grace_seconds
        if is_old or size > budget_bytes:
            size -= versions[version].stat().st_size
            versions[version].unlink()
            removed.append(version)
    for leftover in serving_dir.glob(".marts-*.tmp"):
        leftover.unlink()
    for spilled in serving_dir.glob("marts-*.duckdb.tmp"):
        # DuckDB spill files of a killed reader. New ones may belong to a reader that still has the version open.
        if not spilled.with_suffix("").exists() and abs(moment - spilled.stat().st_mtime) > grace_seconds:
            shutil.rmtree(spilled)
    return removed
