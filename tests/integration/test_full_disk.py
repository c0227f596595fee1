"""A disk that is full at any stage: one sentence names the folder, and the first cycle with room again is correct."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.harness import LEDGERMART, Service

# Runs in a separate mount namespace: fills a small disk with the data folder, and runs commands on it.
_SCRIPT = """
import json, os, shutil, subprocess, sys
from pathlib import Path

source, disk, command = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(disk)], check=True)
data = disk / "data"
shutil.copytree(source, data)
filler = disk / "filler"

def leave(free):
    filler.unlink(missing_ok=True)
    if free is not None:
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(shutil.disk_usage(disk).free - free, 1))

def run(free, *arguments, data=data):
    leave(free)
    environment = {**os.environ, "LEDGERMART_DATA_DIR": str(data)}
    done = subprocess.run([command, *arguments], env=environment, capture_output=True, text=True)
    return {"code": done.returncode, "out": done.stdout, "err": done.stderr}

export = ("export", "--format", "parquet", "--tenant", "first", "--out", str(disk / "export"))
found = {
    "control store": run(0, "key", "create", "--tenant", "first", "--role", "viewer"),
    "records": run(300_000, "cycle"),
    "build": run(2_000_000, "cycle"),
    "export": run(0, *export, data=source),
    "parts": sorted(path.name for path in disk.iterdir()),
    "room": run(None, "cycle", "--json"),
    "export with room": run(None, *export),
    "folder": str(data),
}
print(json.dumps(found))
"""


@pytest.mark.release
def test_a_full_disk_is_one_sentence_at_each_stage_and_the_next_cycle_works(
    ready_service: Service, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    own = ["unshare", "--mount", *(["--user", "--map-root-user"] if os.geteuid() else [])]
    assert shutil.which("unshare") is not None
    done = subprocess.run(
        [*own, sys.executable, "-c", _SCRIPT, str(ready_service.settings.data_dir), str(disk), str(LEDGERMART)],
        env=ready_service.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    for stage in ("control store", "records", "build", "export"):
        assert (stage, found[stage]["code"]) == (stage, 1), found[stage]["err"]
        (line,) = found[stage]["err"].splitlines()
        # The message of an export names the folder of its files; its data folder is on another disk.
        assert f"the disk is full: {disk if stage == 'export' else found['folder']} has " in line
    assert found["parts"] == ["data", "filler"]
    assert found["room"]["code"] == 0, found["room"]["err"]
    assert json.loads(found["room"]["out"])["published"]["version"] >= 1
    assert found["export with room"]["code"] == 0, found["export with room"]["err"]
