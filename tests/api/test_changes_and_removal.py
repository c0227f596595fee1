"""Updates and removal of tokens, wallets and ledgers."""

from typing import Any

import pytest
from litestar.testing import TestClient

from api.examples import (
    EXAMPLE_LEDGER,
    EXAMPLE_TOKEN_ID,
    EXAMPLE_TOKEN_OPERATION_ID,
    EXAMPLE_UNUSED_LEDGER,
    EXAMPLE_WALLET_ID,
    EXAMPLE_WALLET_OPERATION_ID,
)
from control import operations, subjects
from tests.api.test_errors import problem
from tests.api.world import LEDGER_OF_KEYS, World

TOKEN, WALLET = f"/v1/tokens/{EXAMPLE_TOKEN_ID}", f"/v1/wallets/{EXAMPLE_WALLET_ID}"
LEDGER = f"/v1/networks/ledgers/{EXAMPLE_LEDGER}"
SUBJECTS = [("token", TOKEN), ("wallet", WALLET)]


@pytest.mark.parametrize(("kind", "path"), SUBJECTS)
def test_patch_keeps_omitted_fields_and_null_clears_a_field(client: TestClient[Any], kind: str, path: str) -> None:
    before = client.get(path).json()
    answer = client.patch(path, json={"name": "Digital dollar"})
    assert answer.status_code == 200
    changed = answer.json()
    assert changed["updatedAt"] > before["updatedAt"]
    assert changed | {"updatedAt": None} == before | {"name": "Digital dollar", "updatedAt": None}
    assert client.get(path).json() == changed
    assert client.patch(path, json={}).json() == changed
    cleared = client.patch(path, json={"externalId": None, "name": None}).json()
    assert (cleared["externalId"], cleared["name"]) == (None, None)
    listed = client.get(f"/v1/{kind}s?limit=1000").json()["data"]
    assert [row["externalId"] for row in listed if row["id"] == before["id"]] == [None]


def test_search_finds_the_new_name_after_a_change(client: TestClient[Any]) -> None:
    client.patch(TOKEN, json={"symbol": "RENAMED", "name": "Digital dollar"})
    for query in ("q=renam", "q=DIGITAL", "symbol=RENAMED"):
        assert [token["id"] for token in client.get(f"/v1/tokens?{query}").json()["data"]] == [EXAMPLE_TOKEN_ID]
    assert client.get("/v1/tokens?q=SMALL").json()["data"] == []


def test_a_change_of_a_ledger(client: TestClient[Any]) -> None:
    before = client.get(LEDGER).json()
    changed = client.patch(LEDGER, json={"displayName": "Main"}).json()
    assert changed | {"updatedAt": None} == before | {"displayName": "Main", "updatedAt": None}
    both = client.patch(f"/v1/networks/ledgers/{before['id']}", json={"description": "two\nlines"}).json()
    assert (both["displayName"], both["description"]) == ("Main", "two\nlines")
    assert client.patch(LEDGER, json={"displayName": None}).json()["displayName"] is None
    assert client.get(LEDGER).json()["description"] == "two\nlines"


@pytest.mark.parametrize(
    ("path", "body", "status", "code", "pointer"),
    [
        (TOKEN, {"symbol": None}, 422, "invalid-body", "/symbol"),
        (TOKEN, {"name": 5}, 422, "invalid-body", "/name"),
        (TOKEN, {"ledgerId": "0x" + "1" * 40}, 400, "unknown-field", "/ledgerId"),
        (WALLET, {"externalId": "a\nb"}, 422, "invalid-body", "/externalId"),
        (LEDGER, {"displayName": "x" * 201}, 422, "invalid-body", "/displayName"),
        (LEDGER, {"name": "other"}, 400, "unknown-field", "/name"),
    ],
)
def test_invalid_changes_are_refused(
    client: TestClient[Any], path: str, body: dict[str, Any], status: int, code: str, pointer: str
) -> None:
    before = client.get(path).json()
    found = problem(client.patch(path, json={"description": "x"} | body if path == LEDGER else body), status, code)
    assert [error["pointer"] for error in found["errors"]] == [pointer]
    assert client.get(path).json() == before


@pytest.mark.parametrize(
    ("kind", "path", "operation_id"),
    [("token", TOKEN, EXAMPLE_TOKEN_OPERATION_ID), ("wallet", WALLET, EXAMPLE_WALLET_OPERATION_ID)],
)
def test_removed_object_is_gone_everywhere(
    world: World, client: TestClient[Any], kind: str, path: str, operation_id: str
) -> None:
    shown = client.get(path).json()
    answer = client.delete(path)
    assert (answer.status_code, answer.content) == (204, b"")
    rest = ["", "/activities", "/coverage", "/history-requests", f"/history-requests/{operation_id}"]
    rest.append("/cap-table" if kind == "token" else "/balances")
    for suffix in rest:
        problem(client.get(path + suffix), 404, f"{kind}-not-found")
    problem(client.delete(path), 404, f"{kind}-not-found")
    problem(client.patch(path, json={"name": "x"}), 404, f"{kind}-not-found")
    problem(client.put(f"{path}/tracking", json={"trackingStatus": "enabled"}), 404, f"{kind}-not-found")
    problem(client.delete(f"{path}/history-requests/{operation_id}"), 404, f"{kind}-not-found")
    assert shown["id"] not in client.get(f"/v1/{kind}s?limit=1000").text
    assert shown["id"] not in client.get(f"/v1/{kind}s", headers={"Accept": "text/csv"}).text
    with world.store.read() as session:
        windows = subjects.windows(session, world.subject_keys[shown["id"]])
        assert [window.closed_at is None for window in windows] == [False, False]
        unfinished = {row.id for row in operations.unfinished(session, 0)}
    assert operation_id not in unfinished
    assert unfinished, "those of other subjects go on"


@pytest.mark.parametrize(("kind", "path"), SUBJECTS)
def test_same_address_after_removal_creates_a_new_object(client: TestClient[Any], kind: str, path: str) -> None:
    shown = client.get(path).json()
    body = {"ledger": shown["ledger"], "ledgerId": shown["ledgerId"]} | ({"symbol": "X"} if kind == "token" else {})
    problem(client.post(f"/v1/{kind}s", json=body), 409, f"duplicate-{kind}")
    client.delete(path)
    created = client.post(f"/v1/{kind}s", json=body)
    assert created.status_code == 201
    again = client.get(created.headers["location"]).json()
    assert again["id"] != shown["id"]
    assert (again["trackingStatus"], again["windows"], again["asOf"]["blockNumber"]) == ("disabled", [], None)
    assert client.get(f"{created.headers['location']}/activities").json()["data"] == []
    assert client.get(f"{created.headers['location']}/history-requests").json()["data"] == []
    problem(client.get(path), 404, f"{kind}-not-found")


def test_removed_token_is_refused_as_filter(client: TestClient[Any]) -> None:
    client.delete(TOKEN)
    answer = client.get(f"{WALLET}/activities?token={EXAMPLE_TOKEN_ID}")
    assert problem(answer, 422, "invalid-parameter")["errors"][0]["code"] == "unknown-token"


def test_ledger_is_removed_only_when_unused(client: TestClient[Any]) -> None:
    ledger = client.get(LEDGER).json()
    found = problem(client.delete(LEDGER), 409, "ledger-in-use")
    assert found["existingId"] == ledger["id"]
    assert "6 tokens and 1 wallet" in found["detail"]
    for kind in ("token", "wallet"):
        for row in client.get(f"/v1/{kind}s").json()["data"]:
            assert client.delete(f"/v1/{kind}s/{row['id']}").status_code == 204
    assert client.delete(LEDGER).status_code == 204
    problem(client.get(LEDGER), 404, "ledger-not-found")
    problem(client.delete(LEDGER), 404, "ledger-not-found")
    problem(client.patch(LEDGER, json={}), 404, "ledger-not-found")
    left = [row["name"] for row in client.get("/v1/networks/ledgers").json()["data"]]
    assert left == [EXAMPLE_UNUSED_LEDGER, LEDGER_OF_KEYS]
    created = client.put("/v1/networks/sepolia/ledgers", json={"name": EXAMPLE_LEDGER})
    assert created.status_code == 201
    assert created.json()["id"] != ledger["id"]
