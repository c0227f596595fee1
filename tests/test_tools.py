"""The campaigns that have a command of their own, some in a shorter form."""

import subprocess
import sys

import pytest


@pytest.mark.release
@pytest.mark.parametrize("campaign", ["fuzz --examples 20", "faults", "soak --minutes 2", "mutants", "lint_sql --all"])
def test_campaign_finds_no_failure(campaign: str) -> None:
    command = [sys.executable, "-m", *f"tests.{campaign}".split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
