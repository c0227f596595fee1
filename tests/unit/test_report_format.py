"""Runs the JavaScript tests of the pages' exact number formatting."""

import shutil
import subprocess

from tests import CHECKOUT


def test_numbers_of_the_pages_are_exact() -> None:
    node = shutil.which("node")
    assert node, "node is missing: install Node 20 or newer"
    tests = sorted(map(str, (CHECKOUT / "reports" / "test").glob("*.test.mjs")))
    done = subprocess.run([node, "--test", *tests], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
