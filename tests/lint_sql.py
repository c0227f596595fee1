"""Lint the SQL of the dbt project by content: skip files found good under the same macros, settings and sqlfluff.

    python -m tests.lint_sql [--all]

The digests of good files are in `linted-sql.txt`, so a fresh checkout lints changed files alone. sqlfluff takes one to
two seconds of processor time for a file. `--all` lints every file.
"""

import hashlib
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from tests import CHECKOUT

_PROJECT = CHECKOUT / "dbt_project"
_GOOD = Path(__file__).with_name("linted-sql.txt")


def main(*, is_all: bool) -> int:
    """Lint the files that are not known as good; return sqlfluff's exit code."""
    known = set() if is_all else set(_GOOD.read_text().split())
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
    if unknown := sorted(str(found[digest]) for digest in found.keys() - known):
        command = [Path(sys.executable).with_name("sqlfluff"), "lint", "--processes", "2", *unknown]
        if code := subprocess.run(command, cwd=CHECKOUT, check=False).returncode:
            return code
    _GOOD.write_text("\n".join(sorted(found)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(is_all="--all" in sys.argv))
