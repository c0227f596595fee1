"""The machine and the versions that a measurement was made on."""

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

import psutil

from tests.chain.node import anvil_binary


def describe_machine() -> dict[str, str]:
    """Return the machine's data for publication with numbers, by name: processor, cores, memory, load, versions."""
    printed = subprocess.run([anvil_binary(), "--version"], capture_output=True, text=True, check=True).stdout
    load, _, _ = os.getloadavg()
    return {
        "cpu": _cpu_model(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{psutil.virtual_memory().total / 2**30:.1f} GiB",
        "load before": f"{load:.2f}",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        **{name: version(name) for name in ("duckdb", "polars", "dagster", "dbt-core", "litestar")},
        "anvil": printed.split("\n")[0].removeprefix("anvil").removeprefix(" Version:").strip(),
    }


def _cpu_model() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else platform.machine()
