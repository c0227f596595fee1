"""The parts of `make test`: one that lost its tests is not green."""

import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
_PARTS = ("test-integration", "test-api", "test-rest", "test-marts")


def _ends_well(part: str, collected: int, tmp_path: Path, *arguments: str) -> bool:
    """Whether a part is green when pytest ends with an exit code."""
    pytest_alone = tmp_path / "pytest"
    pytest_alone.write_text(f"#!/bin/sh\nexit {collected}\n")
    pytest_alone.chmod(0o755)
    command = ["make", "--no-print-directory", part, f"BIN={tmp_path}", *arguments]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("part", _PARTS)
def test_only_arguments_may_choose_nothing(part: str, tmp_path: Path) -> None:
    assert _ends_well(part, 0, tmp_path, "ARGS=")
    assert not _ends_well(part, 5, tmp_path, "ARGS=")
    assert not _ends_well(part, 5, tmp_path, "ARGS= ")
    assert _ends_well(part, 5, tmp_path, "ARGS=-k 'one or other'")
    assert not _ends_well(part, 1, tmp_path, "ARGS=-k 'one or other'")


def test_every_part_is_part_of_the_whole() -> None:
    recipe = (CHECKOUT / "Makefile").read_text().split("\ntest:")[1].split("\n\n")[0]
    assert all(part in recipe for part in _PARTS)
