"""Enabling tracking together with a request for earlier history, for tokens and wallets."""

from datetime import datetime
from typing import Any

import pytest
from litestar.testing import TestClient

from api.examples import EXAMPLE_WALLET_ID
from tests.api.test_errors import problem
from tests.api.world import FRESH_TOKEN_ID, NFT_TOKEN_ID

FRESH = f"/v1/tokens/{FRESH_TOKEN_ID}"
WALLET = f"/v1/wallets/{EXAMPLE_WALLET_ID}"


def requests(client: TestClient[Any], subject: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"{subject}/history-requests").json()["data"]
    return found


@pytest.mark.parametrize("subject", [FRESH, WALLET])
def test_tracking_with_history_requests_blocks_before_the_window(client: TestClient[Any], subject: str) -> None:
    client.put(f"{subject}/tracking", json={"trackingStatus": "disabled"})
    before = requests(client, subject)
    answer = client.put(f"{subject}/tracking", json={"trackingStatus": "enabled", "history": "creation"})
    assert answer.status_code == 200
    requested = answer.json()["historyRequest"]
    assert (requested["status"], requested["from"], requested["native"]) == ("Pending", "creation", None)
    window = answer.json()["windows"][-1]
    assert datetime.fromisoformat(requested["to"]) == datetime.fromisoformat(window["from"])
    assert requests(client, subject) == [requested, *before]
    again = client.put(f"{subject}/tracking", json={"trackingStatus": "enabled", "history": "creation"})
    assert again.json() == answer.json()
    assert requests(client, subject) == [requested, *before]


@pytest.mark.parametrize("subject", [FRESH, WALLET])
def test_tracking_without_history_makes_no_request(client: TestClient[Any], subject: str) -> None:
    before = requests(client, subject)
    for body in ({"trackingStatus": "disabled"}, {"trackingStatus": "enabled"}, {"trackingStatus": "enabled"}):
        assert client.put(f"{subject}/tracking", json=body).json()["historyRequest"] is None
    assert requests(client, subject) == before


@pytest.mark.ci
@pytest.mark.parametrize("subject", [FRESH, WALLET])
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"trackingStatus": "disabled", "history": "creation"}, 422),
        ({"trackingStatus": "enabled", "history": "now"}, 422),
        ({"trackingStatus": "enabled", "history": "9999-12-31"}, 422),
        ({"trackingStatus": "enabled", "history": 7}, 422),
        ({"trackingStatus": "enabled", "history": "last week"}, 400),
    ],
)
def test_tracking_and_history_succeed_or_fail_together(
    client: TestClient[Any], subject: str, body: dict[str, Any], status: int
) -> None:
    client.put(f"{subject}/tracking", json={"trackingStatus": "disabled"})
    before = client.get(subject).json()["windows"], requests(client, subject)
    code = "invalid-body" if status == 422 else "malformed-field"
    found = problem(client.put(f"{subject}/tracking", json=body), status, code)
    assert [error["pointer"] for error in found["errors"]] == ["/history"]
    assert (client.get(subject).json()["windows"], requests(client, subject)) == before


def test_non_fungible_contract_gets_neither_tracking_nor_history(client: TestClient[Any]) -> None:
    path = f"/v1/tokens/{NFT_TOKEN_ID}"
    answer = client.put(f"{path}/tracking", json={"trackingStatus": "enabled", "history": "creation"})
    assert problem(answer, 422, "invalid-body")["errors"][0]["pointer"] == "/trackingStatus"
    assert (client.get(path).json()["windows"], requests(client, path)) == ([], [])
