"""Lint the SQL of the dbt project by content: skip files found good under the same macros and settings.

    python -m tests.lint_sql FOLDER

FOLDER keeps the digests of good files, also for other checkouts. sqlfluff takes a second of processor time a file.
"""

import hashlib
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from tests import CHECKOUT

_PROJECT = CHECKOUT / "dbt_project"


def main(folder: Path) -> int:
    """Lint the files that are not known as good; return sqlfluff's exit code."""
    good = folder / "good-sql"
    known = set(good.read_text().split()) if good.exists() else set()
    rules = hashlib.sha256(version("sqlfluff").encode())
    for file in [_PROJECT / ".sqlfluff", *sorted((_PROJECT / "macros").rglob("*.sql"))]:
        rules.update(file.read_bytes())
    found = {}
    for room in ("models", "tests"):
        for file in sorted((_PROJECT / room).rglob("*.sql")):
            if "generic" not in file.parts:
                digest = rules.copy()
                digest.update(str(file.relative_to(_PROJECT)).encode() + b"\0" + file.read_bytes())
                found[digest.hexdigest()] = file
    unknown = found.keys() - known
    if not unknown:
        return 0
    command = [Path(sys.executable).with_name("sqlfluff"), "lint", "--processes", "2"]
    done = subprocess.run([*command, *sorted(str(found[digest]) for digest in unknown)], cwd=CHECKOUT, check=False)
    if done.returncode == 0:
        folder.mkdir(parents=True, exist_ok=True)
        good.write_text("\n".join(sorted(found)) + "\n")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
