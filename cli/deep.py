"""`ledgermart doctor --deep`: read every file of the data folder completely; change nothing."""

import os
import sqlite3
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from pathlib import Path

from cli.checks import Check
from cli.environment import age
from control.backups import find_faults, sqlite_path
from control.collected import describe_collected, history_by_network
from control.errors import StoreUnavailable
from control.settings import Settings
from control.store import RESTORE, open_store
from pipelines.deliver.backup import BackupError, check_complete, check_files, places_in, read_backup
from warehouse.port import Warehouse

_BY_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_MOST_NAMED = 3


def examine_files(settings: Settings, backup: Path | None, on_wait: Callable[[str], None]) -> list[Check]:
    """Check the content, owner and mode of every file, and a backup.

    Args:
        backup: a backup to check as well.
        on_wait: called with the name of the writer that must end first.
    """
    return [
        *_checks("files", Warehouse(settings).deep_damage(on_wait), "every block of every DuckDB file is whole"),
        *_control(settings),
        *_checks("records of runs", _records(settings), "whole"),
        *_checks("owner and modes", _modes(settings), "as they should be"),
        _backup(backup),
    ]


def examine_past(settings: Settings, without_archive: Collection[str]) -> Check:
    """Describe the data that would be lost with the warehouse.

    Args:
        without_archive: networks with nodes that cannot read past balances, or that were not reached.
    """
    name = "if the warehouse were lost"
    try:
        with closing(open_store(settings)) as store:
            if not store.is_current():
                return Check(name, "note", "not known: the control store is missing, or from another release")
            with store.read() as session:
                collected = describe_collected(session, settings.shard)
                history = history_by_network(session, settings.shard)
    except StoreUnavailable as error:
        return Check(name, "note", f"not known: {error}")
    if not collected:
        return Check(name, "ok", "nothing was collected yet")
    words = [f"collected so far: {collected}", "tracking windows are collected again from the nodes"]
    if history:
        counts = ", ".join(f"{count} on {network}" for network, count in sorted(history.items()))
        words.append(f"history is not: request it again ({counts})")
    if lost := sorted(set(without_archive)):
        words.append(f"no archive on {', '.join(lost)}: past balances and attestations there are lost for good")
    return Check(name, "note", f"{'; '.join(words)}; `ledgermart backup DIR` keeps all of it")


def _checks(name: str, found: Collection[str], fine: str) -> list[Check]:
    return [Check(name, "wrong", words) for words in found] or [Check(name, "ok", fine)]


def _control(settings: Settings) -> list[Check]:
    name, path = "control store's file", sqlite_path(settings)
    if path is None:
        return [Check(name, "note", "PostgreSQL checks its own files; `pg_amcheck` reads them completely")]
    if not path.exists():
        return [Check(name, "note", f"{path} does not exist")]
    return _checks(name, [f"{path} is damaged ({fault}); {RESTORE}" for fault in _faults(path)], "whole")


def _records(settings: Settings) -> list[str]:
    fix = "stop the service and start it again: it begins new records, and no data is lost"
    return [
        f"{path} is damaged ({fault}); {fix}"
        for path in sorted(settings.dagster_dir.rglob("*.db"))
        for fault in _faults(path)[:1]
    ]


def _faults(path: Path) -> list[str]:
    try:
        return find_faults(path) if path.stat().st_size else ["it is empty"]
    except sqlite3.DatabaseError as error:
        return [str(error)]


def _modes(settings: Settings) -> list[str]:
    """Compare owner and mode of files with those that the service gives them; name the first few."""
    folder = settings.data_dir
    owner = folder.stat().st_uid
    foreign: list[Path] = []
    opened: list[Path] = []
    closed: list[Path] = []
    for path, found in _walk(folder):
        # Also if a restore has set it aside.
        is_published = path.relative_to(folder).parts[0].partition(".")[0] == settings.serving_dir.name
        allowed = (stat.S_IRGRP | stat.S_IXGRP) if is_published and settings.data_group is not None else 0
        needed = stat.S_IRUSR if path.suffix == ".duckdb" and is_published else stat.S_IRUSR | stat.S_IWUSR
        if found.st_uid != owner:
            foreign.append(path)
        if found.st_mode & _BY_OTHERS & ~allowed:
            opened.append(path)
        if found.st_mode & needed != needed:
            closed.append(path)
    found_wrong = (
        (foreign, "of another user", "run commands as the service's user, and give it the files with `chown`"),
        (opened, "open to other users", "close them with `chmod go=`"),
        (closed, "closed to the service itself", "open them with `chmod u=rw`, folders with `chmod u=rwx`"),
    )
    return [
        f"{_named(paths)} {'is' if len(paths) == 1 else 'are'} {words}; {fix}"
        for paths, words, fix in found_wrong
        if paths
    ]


def _walk(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield everything below a folder, but links, sockets and sandboxes."""
    for path in sorted(folder.iterdir()):
        try:
            found = path.lstat()
        except FileNotFoundError:
            continue  # deleted meanwhile
        if path.name == "sandboxes" or not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            continue
        yield path, found
        if stat.S_ISDIR(found.st_mode):
            yield from _walk(path)


def _named(paths: list[Path]) -> str:
    more = len(paths) - _MOST_NAMED
    return ", ".join(map(str, paths[:_MOST_NAMED])) + (f" and {more} more" if more > 0 else "")


def _backup(folder: Path | None) -> Check:
    if folder is None:
        return Check("backup", "note", "none was checked; name the newest one with --backup DIR")
    try:
        backup = read_backup(folder)
        check_complete(backup)
        check_files(backup, places_in(backup))
    except BackupError as error:
        return Check("backup", "wrong", str(error))
    except OSError as error:
        return Check("backup", "wrong", f"{error.filename} cannot be read ({error.strerror}); check disk and owner")
    if any(path.stat().st_mode & _BY_OTHERS for path in (folder, *places_in(backup).values())):
        return Check("backup", "wrong", f"{folder} is open to other users; close it with `chmod -R go= {folder}`")
    detail = f"{folder} is whole: {age(backup.created_at)} old, of version {backup.version}, {backup.bytes:,} bytes"
    return Check("backup", "ok", detail)
