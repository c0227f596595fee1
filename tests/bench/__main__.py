"""`make bench`: run benchmarks one after the other; print their measurements and the machine."""

import argparse
import functools
import json
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TypeAlias

from tests import CHECKOUT
from tests.bench import (
    api,
    cycle,
    extract,
    files,
    history,
    idle,
    lake,
    latency,
    observations,
    outputs,
    reports,
    scale,
    values,
)
from tests.bench.machine import describe_machine
from tests.bench.measurement import Measurement, as_text, summarised
from tests.chain.process import adopt_orphans, stop_descendants

_Benchmark: TypeAlias = Callable[[Path, int | None, Callable[[str], None], list[Measurement]], None]
_PACKAGES = CHECKOUT / "tests" / "debian-packages"
_BENCHMARKS: dict[str, _Benchmark] = {
    "extract": extract.run,
    "outputs": outputs.run,
    "history": history.run,
    "files": files.run,
    "observations": observations.run,
    "cycle": cycle.run,
    "lake": lake.run,
    "latency": latency.run,
    "shards": latency.run_shards,
    "idle": idle.run,
    "values": values.run,
    "api": api.run,
    "reports": reports.run,
    "scale": scale.run,
}


def main() -> int:
    """Run the named benchmarks, by default all; the exit code depends on errors, not on measurements."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(_BENCHMARKS)}; default: all")
    parser.add_argument("--repeat", type=int, help="runs of each; default: as many as the benchmark finds right")
    parser.add_argument("--rows", type=int, default=scale.Size.rows, help="transfers of `scale`; default: %(default)s")
    parser.add_argument("--cold", action="store_true", help="of `cycle` the command alone; default: both")
    parser.add_argument("--warm", action="store_true", help="of `cycle` what the worker forks alone; default: both")
    parser.add_argument("--memory", type=int, default=4096, help="megabytes of DuckDB in `scale`; default: %(default)s")
    parser.add_argument("--cryo", type=Path, help="interpreter with cryo, which `extract` runs in turn; default: none")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args()
    if unknown := set(options.names) - _BENCHMARKS.keys():
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(_BENCHMARKS)}")
    if options.repeat is not None and options.repeat < 1:
        parser.error("--repeat must be at least 1")
    if options.rows < scale.LEAST_ROWS or options.rows % scale.BLOCK:
        parser.error(f"--rows must be at least {scale.LEAST_ROWS:,} and a multiple of {scale.BLOCK}")
    sized = functools.partial(scale.run, size=scale.Size(options.rows), memory_mb=options.memory)
    both = options.cold == options.warm
    chosen = functools.partial(cycle.run, is_cold=both or options.cold, is_warm=both or options.warm)
    extracting = functools.partial(extract.run, cryo=options.cryo)
    benchmarks: dict[str, _Benchmark] = {**_BENCHMARKS, "extract": extracting, "scale": sized, "cycle": chosen}
    names = options.names or list(_BENCHMARKS)
    # Before anything is measured: the browser is used after minutes.
    if "reports" in names and subprocess.run([_PACKAGES], check=False).returncode != 0:
        return 2
    # SIGTERM acts like Ctrl-C, so that the `with` blocks stop all child processes.
    signal.signal(signal.SIGTERM, _interrupt)
    adopt_orphans()
    machine = describe_machine()
    measured: list[Measurement] = []
    exit_code = 0
    try:
        for name in names:
            with tempfile.TemporaryDirectory(prefix="ledgermart-bench-") as folder:
                try:
                    benchmarks[name](Path(folder), options.repeat, _note, measured)
                except Exception:  # noqa: BLE001 - all that was measured is printed; the exit code shows the failure
                    exit_code = 1
                    _note(f"{name} failed:\n{traceback.format_exc()}")
    except KeyboardInterrupt:
        _note("interrupted")
        exit_code = 130
    finally:
        for command in stop_descendants():
            _note(f"ended what was left of: {command}")
    if not measured:
        return exit_code
    summary = summarised(measured)
    if options.json:
        print(json.dumps({"machine": machine, "measurements": summary.to_dicts()}))
    else:
        print("\n".join(f"{name:12} {value}" for name, value in machine.items()))
        print(f"\n{as_text(summary)}")
    return exit_code


def _note(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
