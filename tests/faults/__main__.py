"""`make faults`: do one fault after another to the whole service under load, and print a table of their effects.

Exit code 1: rows were lost, or a fault needed more than one command. 130: interrupted.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from subprocess import SubprocessError
from types import FrameType

import psutil

from tests.chain.process import adopt_orphans, stop_descendants
from tests.e2e.client import ApiError
from tests.e2e.service import ServiceError
from tests.faults.catalogue import NamedFault, catalogue
from tests.faults.service import LoadedService, Mark
from tests.faults.table import Row, as_markdown, named_command

_OWN_MOUNTS = "LEDGERMART_FAULTS_OWN_MOUNTS"
# Also the longest wait if no message names a command: a busy machine needs longer for a cycle.
_LATER_SECONDS = 120.0


def main() -> int:
    """Do the chosen faults, by default all."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="a part of the names of the faults to do; repeatable"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the moments; default: %(default)s")
    parser.add_argument("--list", action="store_true", help="print the names of the faults alone")
    options = parser.parse_args()
    chosen = [fault for fault in catalogue() if not options.only or any(part in fault.name for part in options.only)]
    if not chosen:
        parser.error(f"no name of a fault contains {' or '.join(options.only)}; --list prints all names")
    if options.list:
        print("\n".join(fault.name for fault in chosen))
        return 0
    if any(fault.needs_disk for fault in chosen) and _OWN_MOUNTS not in os.environ:
        _enter_mount_namespace()
    # SIGTERM ends it like Ctrl-C, so that the `with` blocks stop all processes.
    signal.signal(signal.SIGTERM, _interrupt)
    adopt_orphans()
    rows: list[Row] = []
    exit_code = 0
    try:
        with tempfile.TemporaryDirectory(prefix="ledgermart-faults-") as folder:
            _Campaign(Path(folder), options.seed, rows).run(chosen)
    except KeyboardInterrupt:
        _note("interrupted")
        exit_code = 130
    finally:
        for command in stop_descendants():
            _note(f"ended a process that was left: {command}")
        print(as_markdown(rows))
    return exit_code or int(not all(row.is_good for row in rows))


class _Campaign:
    """Faults on one service; a fault that it does not recover from costs a new one.

    Args:
        folder: for the services.
        seed: of the moments. Those of a fault do not depend on the others.
        rows: filled.
    """

    def __init__(self, folder: Path, seed: int, rows: list[Row]) -> None:
        self._folder = folder
        self._seed = seed
        self._rows = rows
        self._services = 0

    def run(self, faults: Sequence[NamedFault]) -> None:
        """Do the faults in their order."""
        left = list(faults)
        while left:
            if left[0].act is None:
                fault = left.pop(0)
                self._rows.append(Row(fault.name, note=fault.reason, is_done=False))
                continue
            self._services += 1
            folder = self._folder / str(self._services)
            with ExitStack() as stack:
                _note("starting chain, price source and service")
                loaded = stack.enter_context(LoadedService(folder, left[0].needs_postgres))
                loaded.settle()
                while left and left[0].act is not None and left[0].needs_postgres == loaded.needs_postgres:
                    fault = left.pop(0)
                    row = self._do(fault, loaded)
                    self._rows.append(row)
                    _note(" | ".join(row.cells()))
                    # A service on a small disk, or a broken one, is not used for the next fault.
                    if fault.needs_disk or not row.is_good:
                        break
            if loaded.data.is_mount():
                subprocess.run(["umount", str(loaded.data)], check=True)

    def _do(self, fault: NamedFault, loaded: LoadedService) -> Row:
        """Do one fault, and run the command that a message names if the service does not recover by itself."""
        assert fault.act is not None
        if fault.needs_disk and os.environ.get(_OWN_MOUNTS) != "yes":
            return Row(fault.name, note="this user may not make a mount namespace", is_done=False)
        _note(fault.name)
        loaded.load.tally.take()
        begun = time.monotonic()
        seconds: float | None = None
        lost: int | None = None
        steps: list[str] = []
        note = ""
        try:
            fault.act(loaded, random.Random(f"{self._seed} {fault.name}"))
            since = loaded.mark()
            is_recovered = loaded.wait_for_recovery(since, fault.patience_seconds)
            if not is_recovered:
                command = named_command(loaded.diagnosis())
                if command is None:
                    is_recovered = loaded.wait_for_recovery(since, _LATER_SECONDS)
                    note = "" if is_recovered else f"no message names a command; {_state(loaded, since)}"
                else:
                    steps.append(command)
                    loaded.follow(command)
                    is_recovered = loaded.wait_for_recovery(loaded.mark(), _LATER_SECONDS)
                    note = "" if is_recovered else f"the command did not help; {_state(loaded, since)}"
            # A start of the service is part of the recovery; a command begins after the wait for a recovery by itself.
            end = loaded.started_at if loaded.started_at > begun and not steps else since.monotonic
            seconds = time.monotonic() - end if is_recovered else None
            lost = loaded.lost_rows()
        except (ApiError, ServiceError, RuntimeError, LookupError, OSError, psutil.Error, SubprocessError) as error:
            note = f"{note} {' '.join(str(error).split())[:500]}".strip()
        finally:
            loaded.load.writing.set()
        if seconds is None:
            _note(f"{loaded.message}\n{loaded.service.log_tail()}")
        return Row(fault.name, loaded.load.tally.take(), lost, seconds, tuple(steps), note)


def _state(loaded: LoadedService, since: Mark) -> str:
    """Return what does not work, for a note."""
    if not loaded.service.is_running:
        return "`up` has ended"
    try:
        return ", ".join(loaded.troubles(since)) or "rows are missing"
    except ApiError as error:
        return " ".join(str(error).split())[:200]


def _enter_mount_namespace() -> None:
    """Run this program again in a mount namespace of its own, where the user may make one."""
    own = ["unshare", "--mount", *(["--user", "--map-root-user"] if os.geteuid() else [])]
    may = shutil.which(own[0]) is not None and subprocess.run([*own, "true"], check=False).returncode == 0
    os.environ[_OWN_MOUNTS] = "yes" if may else "no"
    if may:
        os.execvp(own[0], [*own, sys.executable, "-m", "tests.faults", *sys.argv[1:]])


def _note(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def _interrupt(number: int, frame: FrameType | None) -> None:
    # `timeout` sends it twice: the second one would end the clean-up.
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
