"""`python -m tests.mutants`: apply each mutant of `mutants.toml` to a copy of the sources, and run its test there."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import CHECKOUT


class Mutant(NamedTuple):
    """A text that occurs once in a file, its replacement, and the test that must fail then."""

    name: str
    file: str
    old: str
    new: str
    test: str


def mutants() -> list[Mutant]:
    """Read `mutants.toml`."""
    stored = tomllib.loads(Path(__file__).with_name("mutants.toml").read_text())
    return [Mutant(**one) for one in stored["mutant"]]


def _copy_sources(folder: Path) -> None:
    """Copy the files that Git knows or would add; link or copy the installed and built files."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    for name in subprocess.run(listed, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\0"):
        if name and (CHECKOUT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CHECKOUT / name, folder / name)
    (folder / "build").mkdir()
    for name in (".venv", "node_modules", "build/reports"):
        (folder / name).symlink_to(CHECKOUT / name)
    # Tests replace these marts when a source of them changes.
    if (CHECKOUT / "build/test-world").exists():
        shutil.copytree(CHECKOUT / "build/test-world", folder / "build/test-world")


def _python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(folder)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)


def _outcome(folder: Path, mutant: Mutant) -> tuple[str, str]:
    """Return `killed`, `survived`, `broken` or `does not apply`, and the output of the test."""
    path = folder / mutant.file
    text = path.read_text()
    if text.count(mutant.old) != 1:
        return "does not apply", ""
    path.write_text(text.replace(mutant.old, mutant.new))
    tier = ("-m", "not ci and not release")
    done = _python(folder, "-m", "pytest", mutant.test, "-x", "-q", "-p", "no:cacheprovider", *tier)
    path.write_text(text)
    if done.returncode == pytest.ExitCode.OK:
        return "survived", done.stdout
    # An error outside a test does not show that the test notices the change.
    is_failed = done.returncode == pytest.ExitCode.TESTS_FAILED and "\nFAILED " in done.stdout
    return "killed" if is_failed else "broken", done.stdout


def main() -> int:
    """Run the named mutants, or all, one after the other in one copy; print each result."""
    known = {one.name: one for one in mutants()}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    names, outcomes = parser.parse_args().names or list(known), set()
    if unknown := set(names) - known.keys():
        parser.error(f"no such mutant: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name).resolve()
        _copy_sources(folder)
        imported = _python(folder, "-c", "import pipelines, tests; print(pipelines.__file__, tests.__file__)").stdout
        assert imported.split() == [str(folder / f"{one}/__init__.py") for one in ("pipelines", "tests")], imported
        for mutant in map(known.__getitem__, names):
            begun = time.monotonic()
            outcome, output = _outcome(folder, mutant)
            outcomes.add(outcome)
            sys.stdout.write("" if outcome == "killed" else output[-4000:])
            sys.stdout.write(f"{outcome:9} {mutant.name:24} {time.monotonic() - begun:6.1f} s  {mutant.test}\n")
            sys.stdout.flush()
    return 0 if outcomes == {"killed"} else 1


if __name__ == "__main__":
    sys.exit(main())
