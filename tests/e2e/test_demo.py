"""The whole demo, small, with the real service: it passes on true numbers, and fails on a number that is not."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

# Node and service as ever, but what lies between them leaves the last log out of every answer.
_LYING_DEMO = """
import sys
from tests.chain.fault_proxy import FaultProxy, LostLogsFault
from tests.e2e import demo
from tests.e2e.service import Service

class MisledService(Service):
    def __init__(self, data_dir, rpc_url, extra):
        proxy = FaultProxy(rpc_url)
        proxy.inject(LostLogsFault())
        proxy.start()
        super().__init__(data_dir, proxy.url, extra)

demo.Service = MisledService
sys.exit(demo.main())
"""


def run_demo(start: list[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *start, "--once", "--transfers", "300", "--limit", "900", "--data-dir", str(folder / "demo")],
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_number_agrees_with_the_node(tmp_path: Path) -> None:
    done = run_demo(["-m", "tests.e2e.demo"], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = re.findall(r"agree .* (\d+) of (\d+) (holders|activities|balances|movements) agree", done.stdout)
    # of five tokens and five wallets
    assert [kind for _, _, kind in counts] == ["holders", "activities"] * 5 + ["balances", "movements"] * 5
    assert all(agreed == total != "0" for agreed, total, _ in counts)
    attested = re.findall(r"agree .* (\d+) of (\d+) rows (agree|are confirmed)", done.stdout)
    # of twelve months
    assert [kind for _, _, kind in attested] == ["agree", "are confirmed"] * 12
    assert all(agreed == total != "0" for agreed, total, _ in attested)
    valued = re.findall(r"agree .* (\d+) of (\d+) (prices|values|days) of .* agree", done.stdout)
    # of two feeds; of the activities and holders of a token and the movements of a wallet; of both their histories
    assert [kind for _, _, kind in valued] == ["prices"] * 2 + ["values", "values", "days", "values", "days"]
    assert all(agreed == total != "0" for agreed, total, _ in valued)
    reported = re.findall(r"agree .* (\d+) of (\d+) (figures|balances) of the .* report agree", done.stdout)
    assert [kind for _, _, kind in reported] == ["figures", "balances"]
    assert all(agreed == total != "0" for agreed, total, _ in reported)
    assert "12 of 12 month-ends attested" in done.stdout
    # Links of hundreds of characters are printed at the end alone, and not with --once.
    assert "#t=" not in done.stdout


@pytest.mark.long
def test_a_lost_transfer_is_found(tmp_path: Path) -> None:
    done = run_demo(["-c", _LYING_DEMO], tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "DIFFER" in done.stdout
