"""A writer that suspends itself in each of its transactions: `python -m ... CATALOGUE FOLDER TIMES`.

It exits with 1 if one of them was committed.
"""

import os
import signal
import sys
from pathlib import Path

from tests.unit.warehouse.tables import TABLES
from warehouse.lakes import Lake, LakeConflictError, LakePlace


def main(catalogue: str, folder: str, times: str) -> None:
    """Write as `asleep`, and wait for SIGCONT before each commit."""
    lake = Lake(LakePlace(catalogue, folder), "local", TABLES, Path(folder).parent)
    for _ in range(int(times)):
        with lake.writing("asleep", 1) as opened:
            try:
                with opened.transaction():
                    opened.run("insert into lake.facts values (-1, 'x')")
                    os.kill(os.getpid(), signal.SIGSTOP)
            except LakeConflictError:
                continue
            sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
