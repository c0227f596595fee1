"""What the worker says of itself, for `ledgermart status`: when it looked for something to do, and what keeps it."""

from pathlib import Path

import msgspec

from control.clock import utc_now
from control.settings import Settings


def worker_lock(settings: Settings) -> Path:
    """The lock that the worker holds while it runs."""
    return settings.data_dir / "worker.lock"


class WorkerState(msgspec.Struct, frozen=True):
    """When the worker last looked for something to do, UTC, and why it could not; None where nothing kept it."""

    looked_at: str
    trouble: str | None


def _path(data_dir: Path) -> Path:
    return data_dir / "worker.json"


def read_worker_state(data_dir: Path) -> WorkerState | None:
    """What the worker wrote last; None before the first, and where another version of the service wrote it."""
    try:
        return msgspec.json.decode(_path(data_dir).read_bytes(), type=WorkerState)
    except (FileNotFoundError, msgspec.DecodeError, RecursionError):
        return None


def write_worker_state(data_dir: Path, trouble: str | None) -> None:
    """Write that the worker looks now, and what keeps it from its work."""
    state = WorkerState(utc_now().isoformat(timespec="seconds"), trouble)
    beside = _path(data_dir).with_suffix(".tmp")
    beside.write_bytes(msgspec.json.encode(state))
    beside.replace(_path(data_dir))
