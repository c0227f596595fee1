"""The parts of `make test`: one that lost its tests is not green."""

import shlex
import subprocess
from collections import Counter
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
_PARTS = ("test-commands", "test-services", "test-marts", "test-integration", "test-api", "test-rest")
# What `.ci/run` calls beside `make test`.
_BESIDE = ("test-misfortunes", "test-workbench", "test-superset")


def _pytest_that_ends(exit_code: int, tmp_path: Path) -> None:
    pytest_alone = tmp_path / "pytest"
    pytest_alone.write_text(f"#!/bin/sh\nexit {exit_code}\n")
    pytest_alone.chmod(0o755)


def _ends_well(part: str, collected: int, tmp_path: Path, *arguments: str) -> bool:
    """Whether a part is green when pytest ends with an exit code."""
    _pytest_that_ends(collected, tmp_path)
    command = ["make", "--no-print-directory", part, f"BIN={tmp_path}", *arguments]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("part", _PARTS)
def test_only_arguments_may_choose_nothing(part: str, tmp_path: Path) -> None:
    assert _ends_well(part, 0, tmp_path, "ARGS=")
    assert not _ends_well(part, 5, tmp_path, "ARGS=")
    assert not _ends_well(part, 5, tmp_path, "ARGS= ")
    assert _ends_well(part, 5, tmp_path, "ARGS=-k 'one or other'")
    assert not _ends_well(part, 1, tmp_path, "ARGS=-k 'one or other'")


@pytest.mark.parametrize("target", ["test", "test-slow", "test-long"])
def test_every_part_is_part_of_the_whole(target: str) -> None:
    command = ["make", "--no-print-directory", "--dry-run", target]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert {*_PARTS, *(["lint"] if target == "test" else [])} <= set(done.stdout.split())


@pytest.mark.parametrize(("ends_with", "is_good"), [(0, True), (5, True), (1, False)])
def test_a_part_may_have_nothing_that_is_slow(ends_with: int, is_good: bool, tmp_path: Path) -> None:
    dry = ["make", "--no-print-directory", "--dry-run", "test-slow"]
    done = subprocess.run(dry, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    (parts_at_once,) = [line for line in done.stdout.splitlines() if "test-marts" in line]
    _pytest_that_ends(ends_with, tmp_path)
    done = subprocess.run(f"{parts_at_once} BIN={tmp_path}", shell=True, cwd=CHECKOUT, capture_output=True, text=True)
    assert (done.returncode == 0) is is_good, done.stdout


def _files(target: str) -> list[Path]:
    """The files of tests that a target has pytest run."""
    command = ["make", "--no-print-directory", "--dry-run", target, "BIN=bin", "ARGS="]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    (line,) = [line for line in done.stdout.replace("\\\n", " ").splitlines() if line.startswith("bin/pytest")]
    words = shlex.split(line)
    chosen = [CHECKOUT / word for word in words if word.startswith("tests")] or [CHECKOUT / "tests"]
    ignored = [CHECKOUT / word.removeprefix("--ignore=") for word in words if word.startswith("--ignore=")]
    assert all(path.exists() for path in [*chosen, *ignored]), line
    return [
        path
        for path in (CHECKOUT / "tests").rglob("test_*.py")
        if any(path.is_relative_to(one) for one in chosen) and not any(path.is_relative_to(one) for one in ignored)
    ]


def test_every_file_is_in_one_part() -> None:
    found = Counter(path for target in (*_PARTS, *_BESIDE) for path in _files(target))
    expected = Counter((CHECKOUT / "tests").rglob("test_*.py"))
    assert found == expected
    submitted = (CHECKOUT / ".ci" / "run").read_text().split()
    assert {"test", "test-slow", *_BESIDE} <= set(submitted)
    slow = {path for path in expected if "pytest.mark.slow" in path.read_text()}
    assert slow <= {path for target in _PARTS for path in _files(target)} | {Path(__file__)}
