"""The API guide: every command works on the example world and returns the response shown on the page."""

import json
import re
import shlex
from dataclasses import replace
from typing import Any

import httpx
import pytest
from litestar.testing import TestClient

from api.examples import EXAMPLE_MARKET_PAIR_ID, EXAMPLE_TOKEN_ID
from tests import CHECKOUT
from tests.api.world import World

GUIDE = (CHECKOUT / "docs" / "reference" / "api-guide.md").read_text()
EXAMPLES = re.findall(r"^```sh\n(curl .+?)^```\n\n^```(json|http|csv)\n(.+?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


def test_every_command_has_an_example_response() -> None:
    assert len(EXAMPLES) == GUIDE.count("\ncurl ")


@pytest.fixture
def world(world: World) -> World:
    """The example world with the default rate limit, as shown in the guide."""
    return replace(world, settings=replace(world.settings, rate_limit_per_minute=3000))


def test_every_example_returns_the_response_of_the_guide(world: World, client: TestClient[Any]) -> None:
    variables = {
        "LM": "",
        "KEY": world.keys["admin"],
        "VIEWER_KEY": world.keys["viewer"],
        "TOKEN": EXAMPLE_TOKEN_ID,
        "PAIR": EXAMPLE_MARKET_PAIR_ID,
    }
    for command, form, shown in EXAMPLES:
        answer = run(client, command, variables)
        variables |= taken_from(answer)
        if form == "csv":
            assert matches(shown.strip(), "\n".join(answer.text.splitlines())), answer.text
            continue
        if form == "http":
            head, _, shown = shown.partition("\n\n")
            status, *headers = head.splitlines()
            assert status == f"HTTP/1.1 {answer.status_code} {answer.reason_phrase}"
            for name, value in (header.split(": ", 1) for header in headers):
                assert matches(value, answer.headers[name]), f"{command}: {name}"
        if shown.strip():
            assert_shows(json.loads(shown), answer.json(), command)


def run(client: TestClient[Any], command: str, variables: dict[str, str]) -> httpx.Response:
    """Send the request of a curl command."""
    words = shlex.split(re.sub(r"\$([A-Z_]+)", lambda name: variables[name[1]], command.replace("\\\n", " ")))
    method, url, body, headers = "GET", "", None, {}
    rest = iter(words[1:])
    for word in rest:
        match word:
            case "-s" | "-si":
                pass
            case "-X":
                method = next(rest)
            case "-d":
                body = next(rest)
            case "-H":
                name, _, value = next(rest).partition(": ")
                headers[name] = value
            case _:
                url = word
    return client.request(method, url, headers=headers, content=body)


def taken_from(answer: httpx.Response) -> dict[str, str]:
    """Return the variables that later commands take from a response."""
    found = answer.json() if answer.headers.get("content-type") == "application/json" and answer.content else {}
    taken = {
        "CURSOR": found.get("page", {}).get("nextCursor"),
        "OPERATION": found.get("id"),
        "ETAG": answer.headers.get("etag", "").replace('"', '\\"'),
    }
    return {name: value for name, value in taken.items() if value}


def matches(shown: str, text: str) -> bool:
    """Return whether a text equals the shown one; `…` matches any text."""
    return re.fullmatch(re.escape(shown).replace("…", ".*"), text) is not None


def assert_shows(shown: Any, found: Any, place: str) -> None:
    """Check a response against the guide, which may omit properties and trailing rows."""
    if isinstance(shown, dict):
        for name, value in shown.items():
            assert name in found, f"{place}: {name}"
            assert_shows(value, found[name], f"{place}: {name}")
    elif isinstance(shown, list):
        assert len(found) >= len(shown), place
        for value, item in zip(shown, found, strict=False):
            assert_shows(value, item, place)
    elif isinstance(shown, str):
        assert isinstance(found, str), f"{place}: {found}"
        assert matches(shown, found), f"{place}: {found}"
    else:
        assert found == shown, f"{place}: {found}"
