"""`docs/how-to/analysts.md`, run word for word on a copy of the checkout: a sandbox, a mart, and a field of the API."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import CHECKOUT
from tests.chain.node import AnvilNode
from tests.chain.world import World
from tests.integration.harness import Service
from tests.oracles.node import instant

pytestmark = pytest.mark.release

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"^(?:--|#) (\S+/\S+)\n(.*)", re.DOTALL)

# Run the API of the copy in a process without any path to this checkout.
_ASK = """
import sys
from litestar.testing import TestClient
from api.app import create_app
from control.settings import load_settings
assert not create_app.__code__.co_filename.startswith(sys.argv[1])
with TestClient(create_app(load_settings())) as client:
    answer = client.get(f"/v1/tokens/{sys.argv[2]}", headers={"Authorization": f"Bearer {sys.argv[3]}"})
    print(answer.text)
"""


def script(page: str) -> str:
    """The page's code blocks as one script: files are written, differences applied, commands run, in order."""
    steps = ["set -euo pipefail"]
    for language, text in _BLOCK.findall(page):
        if language == "bash":
            steps.append(text)
        elif language == "diff":
            steps.append(f"git apply <<'END_OF_BLOCK'\n{text}END_OF_BLOCK")
        else:
            match = _FILE.fullmatch(text)
            assert match, f"a block of {language} without the name of its file:\n{text}"
            path, content = match.groups()
            # Absolute paths: earlier commands may have changed the folder.
            steps.append(f'mkdir -p "$(dirname "$CHECKOUT/{path}")"')
            steps.append(f"cat > \"$CHECKOUT/{path}\" <<'END_OF_BLOCK'\n{content}END_OF_BLOCK")
    return "\n".join(steps)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of all files that the page names."""
    checkout = tmp_path / "clone"
    for folder in ("api", "cli", "control", "dbt_project", "docs", "pipelines", "warehouse"):
        shutil.copytree(
            CHECKOUT / folder, checkout / folder, ignore=shutil.ignore_patterns("__pycache__", "target", "logs")
        )
    for file in ("dagster.yaml", "workspace.yaml"):
        shutil.copy(CHECKOUT / file, checkout)
    # The documentation page's files.
    (checkout / "node_modules").symlink_to(CHECKOUT / "node_modules")
    return checkout


def test_a_mart_from_sql_to_a_field_of_the_api(copy: Path, node: AnvilNode, ready_service: Service) -> None:
    service = ready_service
    world = World(node, wallet_count=4)
    gold = world.deploy_token("GOLD", 18)
    world.distribute(gold, 10)
    for index in range(3):
        world.transfer(gold, world.wallets[index], world.wallets[3], 1)
    world.mine()
    service.point_at("local", node.url)
    tenant = service.tenant()
    token = service.token(tenant, gold.address, tracked_from=instant(node, 0))
    environment = service.environment(PYTHONPATH=str(copy), CHECKOUT=str(copy))
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script((copy / "docs" / "how-to" / "analysts.md").read_text())],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "PASS token_transfer_counts::transfers_are_counted_without_mints" in done.stdout
    answer = subprocess.run(
        [sys.executable, "-c", _ASK, str(CHECKOUT), token.id, service.bearer(tenant)],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    # Expected by the node: all events except the mint, which is from the zero address.
    events = world.transfer_logs(0, node.head(), gold.address)
    transfers = [event for event in events if "0x" + "00" * 32 not in event["topics"]]
    assert json.loads(answer.stdout)["transferCount"] == len(transfers) == 7
    assert len(events) == 8
