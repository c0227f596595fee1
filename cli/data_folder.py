"""The data folder's owners and modes: its own user alone, and one group for the published files."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from control.settings import Settings, SettingsError

_OWNER = 0o700
_PASSED_BY_GROUP = 0o710  # the group may reach what is in it, and list nothing
_READ_BY_GROUP = 0o2750  # files that are made in it are of its group


def prepare_folders(settings: Settings) -> str | None:
    """Make the data folders, and close them to others.

    A folder that was open, of an earlier release, is closed once, with everything in it. One that belongs to another
    user is left as it is.

    Returns:
        What was closed, for people; None when it was closed already.

    Raises:
        SettingsError: a folder cannot be made, or the group of LEDGERMART_DATA_GROUP cannot be given the folder.
    """
    folder = settings.data_dir
    is_new = not folder.exists()
    for made in (folder, settings.serving_dir, settings.dagster_dir):
        try:
            made.mkdir(mode=_OWNER, parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(
                f"LEDGERMART_DATA_DIR: {made} cannot be made ({error.strerror}); name a folder that the service's user "
                "may make and write"
            ) from error
    found = folder.stat()
    if os.geteuid() not in (0, found.st_uid):
        return None
    mode, closed = stat.S_IMODE(found.st_mode), None
    if mode & ~_PASSED_BY_GROUP and not is_new:
        for path in folder.rglob("*"):
            _close(path)
        closed = f"{folder} was open to others ({mode:o}); now only its owner reads it and what is in it"
    _give(settings, settings.serving_dir, _READ_BY_GROUP)
    _give(settings, folder, _PASSED_BY_GROUP)
    return closed


def check_writable(settings: Settings) -> None:
    """Do nothing where this process may write the data folder.

    Raises:
        SettingsError: it may not; names the folder and the fix.
    """
    if not os.access(settings.data_dir, os.W_OK | os.X_OK):
        raise SettingsError(
            f"LEDGERMART_DATA_DIR: {settings.data_dir} is not writable; give it to the service's user, or name another "
            "folder"
        )


def _close(path: Path) -> None:
    # Files of processes at work come and go.
    with suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if not stat.S_ISLNK(mode):
            path.chmod(stat.S_IMODE(mode) & _OWNER)


def _give(settings: Settings, folder: Path, group_mode: int) -> None:
    """Set a folder's group and mode, and, where the group reads it, those of its files; the folder's mode at last."""
    group = settings.data_group
    wanted = _OWNER if group is None else group_mode
    found = folder.stat()
    if stat.S_IMODE(found.st_mode) == wanted and group in (None, found.st_gid):
        return
    try:
        for path in (*(folder.iterdir() if group_mode & stat.S_IRGRP else ()), folder):
            with suppress(FileNotFoundError):
                if group is not None:
                    os.chown(path, -1, group)
                if path != folder:
                    read_by_group = 0o040 if group is not None else 0
                    path.chmod(stat.S_IMODE(path.stat().st_mode) & 0o600 | read_by_group)
        folder.chmod(wanted)
    except PermissionError as error:
        raise SettingsError(
            f"LEDGERMART_DATA_GROUP: {error.filename} cannot be given to the group {group}; name a group that the "
            "service's user is in"
        ) from error
