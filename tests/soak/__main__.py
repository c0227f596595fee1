"""`make soak`: readers, writers, cycles, history, reports and exports for minutes; no error, flat memory and handles.

Exit code 1: a request failed, a log has a stack trace, a process was restarted, rows were lost, or something grows.
"""

import argparse
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import FrameType

from tests.bench.machine import describe_machine
from tests.chain.process import adopt_orphans, stop_descendants
from tests.faults.service import LoadedService
from tests.soak.growth import ALLOWANCE, Sample, growths, sample
from tests.soak.work import add_work

_SAMPLE_SECONDS = 5.0
_MINUTE = 60.0
_RECOVERY_SECONDS = 120.0
_STACK_TRACE = re.compile(r"^Traceback \(most recent call last\)|^thread '.*' panicked", re.MULTILINE)
_RESTART = re.compile(r"exited with code .*restarting")
_HEADERS = ("process", "quantity", "first", "last", "max", "median of first third", "of last third", "verdict")


def main() -> int:
    """Run the service under load, and print a table of memory and open files."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0, help="default: %(default)s")
    options = parser.parse_args()
    # SIGTERM ends it like Ctrl-C, so that the `with` blocks stop all processes.
    signal.signal(signal.SIGTERM, _interrupt)
    adopt_orphans()
    machine = describe_machine()
    try:
        with tempfile.TemporaryDirectory(prefix="ledgermart-soak-") as folder:
            with LoadedService(Path(folder) / "service", add_load=add_work) as loaded:
                return _soak(loaded, options.minutes, machine)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    finally:
        stop_descendants()


def _soak(loaded: LoadedService, minutes: float, machine: dict[str, str]) -> int:
    samples: list[dict[str, Sample]] = []
    outcomes: Counter[str] = Counter()
    is_interrupted = False
    begun = time.monotonic()
    shown = 0
    try:
        while (elapsed := time.monotonic() - begun) < minutes * _MINUTE:
            loaded.load.check()
            samples.append(sample(loaded.service.processes()))
            if elapsed >= shown * _MINUTE:
                outcomes += loaded.load.tally.take()
                _print_minute(shown, samples[-1], outcomes)
                shown += 1
            time.sleep(_SAMPLE_SECONDS)
        is_whole = loaded.wait_for_recovery(loaded.mark(), _RECOVERY_SECONDS)
    except KeyboardInterrupt:
        is_interrupted = is_whole = True
    measured = (time.monotonic() - begun) / _MINUTE
    outcomes += loaded.load.tally.take()
    failures = {outcome: count for outcome, count in outcomes.items() if outcome != "ok"}
    failures.update(_logged(loaded))
    if not is_whole:
        failures["rows missing, or nothing new was published at the end"] = 1
    found = growths(samples)
    print("\n" + "\n".join(f"{name:12} {value}" for name, value in machine.items()))
    rows = [_HEADERS, tuple("---" for _ in _HEADERS), *(growth.cells() for growth in found)]
    print("\n" + "\n".join(f"| {' | '.join(cells)} |" for cells in rows))
    print(f"\n{ALLOWANCE}.")
    print(f"{outcomes.total():,} requests in {measured:.1f} minutes; errors: {sum(failures.values())}")
    for failure, count in failures.items():
        print(f"- {count} of {failure}")
    if is_interrupted:
        print("interrupted, so no verdict on lost rows")
        return 130
    return int(bool(failures) or not all(growth.is_flat for growth in found))


def _print_minute(minute: int, taken: dict[str, Sample], outcomes: "Counter[str]") -> None:
    parts = (f"{role} {one.memory:.0f} MiB {one.handles:.0f} files" for role, one in taken.items())
    failed = outcomes.total() - outcomes["ok"]
    print(f"minute {minute}: {'; '.join(parts)}; {outcomes.total():,} requests, {failed} failed", flush=True)


def _logged(loaded: LoadedService) -> dict[str, int]:
    """Count stack traces in the logs, and restarts of processes."""
    found = {}
    for path in (*(loaded.data / "logs").glob("*.log*"), loaded.service.log_path):
        text = path.read_text(encoding="utf-8", errors="replace")
        for what, pattern in (("stack traces", _STACK_TRACE), ("restarts", _RESTART)):
            if count := len(pattern.findall(text)):
                found[f"{what} in {path.name}"] = count
                at = pattern.search(text)
                assert at is not None
                print(f"{path.name}:\n{text[max(at.start() - 500, 0) : at.start() + 3000]}", file=sys.stderr)
    return found


def _interrupt(number: int, frame: FrameType | None) -> None:
    # `timeout` sends it twice: the second one would end the clean-up.
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
