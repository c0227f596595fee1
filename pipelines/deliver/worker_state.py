"""State of the worker for `ledgermart status`: the time of its last look for work, and its trouble."""

from pathlib import Path

import msgspec

from control.clock import utc_now
from control.settings import Settings


def worker_lock(settings: Settings) -> Path:
    """Return the path of the lock that the worker holds while it runs."""
    return settings.data_dir / "worker.lock"


class WorkerState(msgspec.Struct, frozen=True):
    """Time (UTC) at which the worker last looked for work, and its trouble; None without any."""

    looked_at: str
    trouble: str | None


def _path(data_dir: Path) -> Path:
    return data_dir / "worker.json"


def read_worker_state(data_dir: Path) -> WorkerState | None:
    """Read the worker's last state; None before the first one, or if it is damaged or of another release."""
    try:
        return msgspec.json.decode(_path(data_dir).read_bytes(), type=WorkerState)
    except (FileNotFoundError, msgspec.DecodeError, RecursionError, ValueError):
        return None


def write_worker_state(data_dir: Path, trouble: str | None) -> None:
    """Record that the worker looks for work now, and the trouble that prevents it."""
    state = WorkerState(utc_now().isoformat(timespec="seconds"), trouble)
    beside = _path(data_dir).with_suffix(".tmp")
    beside.write_bytes(msgspec.json.encode(state))
    beside.replace(_path(data_dir))
