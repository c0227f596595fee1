"""Publishing: an immutable copy of the marts for each version, then the pointer moves.

Where the file system can, a copy shares the blocks of the marts, and later builds write only what they change.

`marts-<version>.duckdb` never changes once its name exists. `current.json` names the version in force, for the API;
`current.duckdb` is the same file under a stable name, for tools that open the file anew for each query. Both move by
rename, so that a reader sees the old version or the new one, never something in between.
"""

import json
import os
import re
import shutil
import uuid
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

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
# A pointer is some 200 bytes. Names of versions have 12 digits, and a next one must fit.
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
    """What `current.json` says: the version in force, the installation's epoch, and how far its stores had come then.

    What releases before did not write is empty or 0.
    """

    publication: Publication
    epoch: str
    batch_id: int
    control_revision: int


def current_publication(serving_dir: Path) -> Publication | None:
    """The version that the pointer names, or, where that is lost, the newest there is; None when nothing is published.

    So do readers: a lost pointer or file stops nobody.
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
    """Whether the pointer can be read and the file that it names can be opened; else a version is to be published."""
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
    """Read which version was published last.

    Raises:
        PointerError: it is missing or damaged.
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
        fields = read_json(serving_dir / "current.json", _MOST_POINTER_BYTES)
        version, at = fields["version"], datetime.fromisoformat(fields["publishedAt"])
        pointer = _Pointer(
            Publication(version, path_of(serving_dir, version).name, at),
            str(fields.get("epoch", "")),
            fields.get("batchId", 0),
            fields.get("controlRevision", 0),
        )
        numbers = (version, pointer.batch_id, pointer.control_revision)
        if any(type(number) is not int or not 0 <= number < _MOST_NUMBER for number in numbers):
            raise ValueError("a number is out of range")
        if at.tzinfo is None or fields["file"] != pointer.publication.file:
            raise ValueError("time or file are not those of a publication")
    except FileNotFoundError as error:
        raise PointerError("current.json is missing") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise PointerError("current.json cannot be read") from error
    return pointer


def _find_pointer(serving_dir: Path) -> Publication | None:
    try:
        return read_pointer(serving_dir)
    except PointerError:
        return None


def _epoch(serving_dir: Path, batch_id: int, control_revision: int, recorded: int) -> str:
    """The epoch of the next publication: that of the pointer, or a new one.

    A new one begins where the pointer is lost, and where the warehouse or the control store has not come as far as it
    had when the pointer moved: it was restored, and numbers that clients know will be given to something else. A
    publication that was killed before the warehouse recorded it is no restore.
    """
    try:
        before = _read_pointer(serving_dir)
    except PointerError:
        return uuid.uuid4().hex
    is_continued = (
        before.epoch
        and recorded >= before.publication.version - 1
        and batch_id >= before.batch_id
        and control_revision >= before.control_revision
    )
    return before.epoch if is_continued else uuid.uuid4().hex


def epoch_of(connection: duckdb.DuckDBPyConnection) -> str:
    """The epoch in which a version was published; empty where a release before published it."""
    try:
        row = connection.execute("select epoch from marts.publication").fetchone()
    except (duckdb.CatalogException, duckdb.BinderException):
        return ""
    return str(row[0]) if row else ""


def tenant_versions_of(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Every tenant's own number in a version; empty where a release before published it."""
    try:
        rows = connection.execute(
            "select tenant_id, max(data_version) from marts.tenant_versions group by tenant_id"
        ).fetchall()
    except (duckdb.CatalogException, duckdb.BinderException):
        return {}
    return dict(rows)


def _readable(serving_dir: Path) -> int:
    """The mode of a file that whoever may read the folder may read."""
    return 0o400 | (serving_dir.stat().st_mode & 0o040)


def _replace_text(path: Path, text: str) -> None:
    beside = path.with_suffix(".tmp")
    beside.write_text(text)
    beside.chmod(0o200 | _readable(path.parent))
    sync(beside)
    beside.replace(path)


def path_of(serving_dir: Path, version: int) -> Path:
    """The file of a version, whether it is there or not."""
    return serving_dir / f"marts-{version:012d}.duckdb"


def published_at(path: Path) -> datetime:
    """When the file of a version was made, where no pointer says it."""
    return datetime.fromtimestamp(int(path.stat().st_mtime), UTC)


def open_locked_down(path: Path, memory_megabytes: int) -> duckdb.DuckDBPyConnection:
    """Open a version for statements of a service: they read this file alone, within this memory.

    Raises:
        duckdb.IOException: it cannot be opened.
    """
    connection = duckdb.connect(
        str(path),
        read_only=True,
        config={
            "memory_limit": f"{memory_megabytes}MB",
            "threads": _READER_THREADS,
            "enable_external_access": "false",
            # The loop that is taken for few rows otherwise: 3 s for 120 moments among 500,000 prices, sorted 0.1 s.
            "asof_loop_join_threshold": "0",
            # The first rows of an order are found by its columns alone, the others read for these, by default up to 50.
            # Of 280,000 holders the first thousand take 15 ms so, and 50 otherwise.
            "late_materialization_max_rows": "2048",
        },
    )
    return quiet(connection, locked_down=True)


def published_versions(serving_dir: Path) -> dict[int, Path]:
    """Files of the versions that are kept, by version."""
    return {
        int(match[1]): path
        for path in sorted(serving_dir.glob("marts-*.duckdb"))
        if (match := _NAME.fullmatch(path.name))
    }


def publish(
    marts_path: Path, serving_dir: Path, batch_id: int, recorded: int = 0, control_revision: int = 0
) -> Publication:
    """Copy the marts to a new version and point readers at it.

    The version is one more than any that is known, whatever of pointer, files and records was lost: what was read under
    a number stays under it. A kill before the pointer moves leaves a file that nothing names; it goes as old ones do.

    Args:
        recorded: the newest version that the warehouse knows of.
        control_revision: of the control store, as far as it is in the marts.
    """
    serving_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    named = _find_pointer(serving_dir)
    version = max(recorded, named.version if named else 0, *published_versions(serving_dir), 0) + 1
    name = path_of(serving_dir, version).name
    epoch = _epoch(serving_dir, batch_id, control_revision, recorded)
    connection = connect(marts_path)
    try:
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
    # One that a killed publication left may be read-only already.
    beside.unlink(missing_ok=True)
    if not reflink(marts_path, beside):
        shutil.copyfile(marts_path, beside)
    sync(beside)
    beside.chmod(_readable(serving_dir))
    # Unlike a rename, a link does not take the place of a file.
    os.link(beside, serving_dir / name)
    beside.unlink()
    publication = Publication(version, name, utc_now().replace(microsecond=0))
    _replace_text(
        serving_dir / "current.json",
        json.dumps(
            {
                "version": version,
                "file": name,
                "publishedAt": publication.published_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "epoch": epoch,
                "batchId": batch_id,
                "controlRevision": control_revision,
            }
        ),
    )
    stable = serving_dir / ".current.tmp"
    stable.unlink(missing_ok=True)
    os.link(serving_dir / name, stable)
    stable.replace(serving_dir / "current.duckdb")
    sync(serving_dir)
    return publication


def megabytes_needed(serving_dir: Path, pinned: Collection[int]) -> int:
    """Disk space of the versions that may not go, rounded up; 0 where pins keep no other than would stay anyway."""
    current = current_publication(serving_dir)
    kept = published_versions(serving_dir)
    if current is None or not any(version in pinned for version in kept if version < current.version - 1):
        return 0
    size = sum(_size(path) for version, path in kept.items() if version >= current.version - 1 or version in pinned)
    return -(-size // 1_000_000)


def megabytes_held(serving_dir: Path, pinned: Collection[int]) -> int:
    """Return the disk space of the versions that only pins keep, rounded up."""
    current = current_publication(serving_dir)
    if current is None:
        return 0
    kept = published_versions(serving_dir)
    size = sum(_size(path) for version, path in kept.items() if version < current.version - 1 and version in pinned)
    return -(-size // 1_000_000)


def _size(path: Path) -> int:
    """Bytes of a file; none where it has been removed meanwhile, which readers are not asked about."""
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
    """Remove versions that readers have had time to leave; return them.

    A version stays for the grace period after it was superseded. Beyond the disk budget the oldest go earlier. The
    version in force and the one before it always stay, for requests in flight, and pinned ones as long as they are.
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
        is_old = moment - superseded_at[version] > grace_seconds
        if is_old or size > budget_bytes:
            size -= versions[version].stat().st_size
            versions[version].unlink()
            removed.append(version)
    for leftover in serving_dir.glob(".marts-*.tmp"):
        leftover.unlink()
    for spilled in serving_dir.glob("marts-*.duckdb.tmp"):
        # Of a reader that was killed, unless one that still has the version open writes to it.
        if not spilled.with_suffix("").exists() and moment - spilled.stat().st_mtime > grace_seconds:
            shutil.rmtree(spilled)
    return removed
