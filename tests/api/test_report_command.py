"""`ledgermart report` prints the API's report links for the given key."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from click.testing import CliRunner, Result

from api.examples import EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from cli.main import main
from control import access
from tests.api.test_reports import claims_of
from tests.api.world import FOREIGN_TOKEN_ID, World


@pytest.fixture
def run(world: World, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the command like a process with the world's environment."""
    monkeypatch.setattr("cli.environment.prepare", lambda: world.settings)

    def invoke(*arguments: str, key: str | None = "viewer", typed: str | None = None) -> Result:
        environment = {"LEDGERMART_API_KEY": world.keys.get(key, key) if key else None}
        return CliRunner().invoke(main, ["report", *arguments], env=environment, input=typed)

    return invoke


def test_links_equal_those_of_the_api(world: World, run: Any) -> None:
    for arguments, report, params in (
        ([], "index", {}),
        (["--token", EXAMPLE_TOKEN_ID], "cap-table", {"tokenId": EXAMPLE_TOKEN_ID}),
        (["--wallet", EXAMPLE_WALLET_ID, "--theme", "dark"], "wallet-activity", {"walletId": EXAMPLE_WALLET_ID}),
    ):
        result = run("--json", *arguments)
        assert result.exit_code == 0, result.output
        link = json.loads(result.stdout)
        claims = claims_of(link["reportUrl"])
        assert (link["type"], claims["report"], claims["params"]) == (report, report, params)
        assert claims["tenant"] == world.tenant_id
        assert ("theme=dark" in link["reportUrl"]) == ("dark" in arguments)
        with world.client() as client:
            token = link["reportUrl"].partition("#t=")[2]
            answer = client.post("/embed/token", headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == 200, answer.text


def test_text_output_has_the_link_on_its_own_line(run: Any) -> None:
    result = run()
    assert result.exit_code == 0, result.output
    url = result.stdout.splitlines()[0]
    expires = datetime.fromtimestamp(claims_of(url)["exp"], UTC)
    assert f"until {expires:%H:%M:%S} UTC" in result.stdout
    assert "http://127.0.0.1:8000" in result.stdout.partition("\n")[2]


def test_key_prompt_does_not_echo(world: World, run: Any) -> None:
    result = run("--json", key=None, typed=world.keys["viewer"] + "\n")
    assert json.loads(result.stdout)["type"] == "index"
    assert world.keys["viewer"] not in result.output
    with world.store.read() as session:
        [used] = [key for key in access.list_keys(session, world.tenant_id) if key.role == "viewer"]
    assert used.last_used_at is not None


@pytest.mark.parametrize(
    ("arguments", "key", "said"),
    [
        ([], "lm_wrong", "not valid"),
        (["--token", FOREIGN_TOKEN_ID], "viewer", "no token"),
        (["--wallet", EXAMPLE_TOKEN_ID], "viewer", "no wallet"),
        (["--wallet", EXAMPLE_WALLET_ID, "--token", EXAMPLE_TOKEN_ID], "viewer", "not both"),
        (["--theme", "blue"], "viewer", "--theme"),
    ],
)
def test_wrong_arguments_are_reported(run: Any, arguments: list[str], key: str, said: str) -> None:
    result = run(*arguments, key=key)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stdout == ""
