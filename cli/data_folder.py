"""Owner and modes of the data folder: one user, and one group that reads the published files."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from control.settings import Settings, SettingsError

_OWNER = 0o700
_PASSED_BY_GROUP = 0o710  # the group may open files in it, but not list them
_READ_BY_GROUP = 0o2750  # new files get the group of the folder


def prepare_folders(settings: Settings) -> str | None:
    """Create the data folders, and close them to other users.

    If other users can read a folder of an earlier release, their access to it and its contents is removed once. A
    folder of another user is not changed.

    Returns:
        A message about the folder that was closed; None if no folder was open.

    Raises:
        SettingsError: a folder cannot be created, or cannot be assigned to the group of LEDGERMART_DATA_GROUP.
    """
    folder = settings.data_dir
    is_new = not folder.exists()
    for made in (folder, settings.serving_dir, settings.dagster_dir):
        try:
            made.mkdir(mode=_OWNER, parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(
                f"LEDGERMART_DATA_DIR: {made} cannot be created ({error.strerror}); name a folder that the service's "
                "user may create and write"
            ) from error
    found = folder.stat()
    if os.geteuid() not in (0, found.st_uid):
        return None
    mode, closed = stat.S_IMODE(found.st_mode), None
    if mode & ~_PASSED_BY_GROUP and not is_new:
        for path in folder.rglob("*"):
            _close(path)
        closed = f"{folder} was open to others ({mode:o}); now only its owner can read it and its contents"
    _give(settings, settings.serving_dir, _READ_BY_GROUP)
    _give(settings, folder, _PASSED_BY_GROUP)
    return closed


def check_writable(settings: Settings) -> None:
    """Check that this process may write the data folder.

    Raises:
        SettingsError: it may not; the message names the folder and the fix.
    """
    if not os.access(settings.data_dir, os.W_OK | os.X_OK):
        raise SettingsError(
            f"LEDGERMART_DATA_DIR: {settings.data_dir} is not writable; make the service's user its owner, or name "
            "another folder"
        )


# The limit of the system for the path of a socket.
_MOST_SOCKET_BYTES = 107


def check_socket(settings: Settings) -> None:
    """Check that a socket in the data folder can be opened by its path.

    Raises:
        SettingsError: the path is too long; the message names the folder and the fix.
    """
    path = settings.code_server_socket
    if (length := len(os.fsencode(path))) > _MOST_SOCKET_BYTES:
        other = len(path.name) + 1
        raise SettingsError(
            f"LEDGERMART_DATA_DIR: {settings.data_dir} has {length - other} bytes, too many for a socket's path in "
            f"it; name a folder of at most {_MOST_SOCKET_BYTES - other} bytes, or a short symbolic link to the folder"
        )


def _close(path: Path) -> None:
    # Running processes delete files.
    with suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if not stat.S_ISLNK(mode):
            path.chmod(stat.S_IMODE(mode) & _OWNER)


def _give(settings: Settings, folder: Path, group_mode: int) -> None:
    """Set group and mode of a folder, after those of its files if the group may read the folder."""
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
            f"LEDGERMART_DATA_GROUP: {error.filename} cannot be assigned to the group {group}; name a group that the "
            "service's user belongs to"
        ) from error
