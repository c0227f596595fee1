"""History requests of tokens and wallets: creation, lists, progress and cancelling."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from litestar.testing import TestClient

from api.examples import EXAMPLE_TOKEN_ID, EXAMPLE_TOKEN_OPERATION_ID, EXAMPLE_WALLET_ID, EXAMPLE_WALLET_OPERATION_ID
from control.clock import utc_now
from control.operations import Status
from tests.api.test_errors import problem
from tests.api.world import BIG_TOKEN_ID, FRESH_TOKEN_ID, NFT_TOKEN_ID, World, report

TOKEN = f"/v1/tokens/{EXAMPLE_TOKEN_ID}/history-requests"
WALLET = f"/v1/wallets/{EXAMPLE_WALLET_ID}/history-requests"
FRESH = f"/v1/tokens/{FRESH_TOKEN_ID}/history-requests"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_request_is_stored_in_canonical_form(client: TestClient[Any]) -> None:
    before = utc_now()
    answer = client.post(FRESH, json={"from": "2026-01-31T14:00:00+02:00"})
    assert answer.status_code == 202
    made = answer.json()
    assert answer.headers["location"] == f"{FRESH}/{made['id']}"
    created = datetime.fromisoformat(made.pop("createdAt"))
    assert before <= created <= utc_now()
    assert made == {
        "id": made["id"],
        "status": "Pending",
        "progress": {"done": 0, "total": None, "unit": "blocks"},
        "rate": None,
        "estimatedEnd": None,
        "resumesAt": None,
        "from": "2026-01-31T12:00:00Z",
        "to": "now",
        "fromBlock": None,
        "toBlock": None,
        "native": None,
        "note": None,
        "error": None,
        "startedAt": None,
        "cancelRequestedAt": None,
        "finishedAt": None,
    }
    assert client.get(answer.headers["location"]).json() == answer.json()
    assert client.get(FRESH).json()["data"] == [answer.json()]
    assert client.get(f"/v1/tokens/{FRESH_TOKEN_ID}").json()["trackingStatus"] == "disabled"


def test_a_wallets_request_may_name_its_mode(client: TestClient[Any]) -> None:
    made = client.post(WALLET, json={"from": "creation", "to": "block:50", "native": "full"}).json()
    assert (made["from"], made["to"], made["native"]) == ("creation", "block:50", "full")
    assert client.post(WALLET, json={"from": "block:5", "to": "block:5"}).json()["native"] is None


@pytest.mark.parametrize(
    ("path", "body", "pointer"),
    [
        (TOKEN, {}, "/from"),
        (TOKEN, {"from": None}, "/from"),
        (TOKEN, {"from": "block:9", "to": "block:8"}, "/to"),
        (WALLET, {"from": "creation", "native": "none"}, "/native"),
    ],
)
def test_invalid_fields_are_named(client: TestClient[Any], path: str, body: dict[str, Any], pointer: str) -> None:
    before = client.get(path).json()
    found = problem(client.post(path, json=body), 422, "invalid-body")
    assert [error["pointer"] for error in found["errors"]] == [pointer]
    assert client.get(path).json() == before


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"from": "last week"}, "/from"),
        ({"from": "block:"}, "/from"),
        ({"from": "2026-02-30"}, "/from"),
        ({"from": "creation", "to": "soon"}, "/to"),
    ],
)
def test_malformed_fields_are_named(client: TestClient[Any], body: dict[str, Any], pointer: str) -> None:
    for path in (TOKEN, WALLET):
        found = problem(client.post(path, json=body), 400, "malformed-field")
        assert [error["pointer"] for error in found["errors"]] == [pointer]


def test_unknown_field_is_refused(client: TestClient[Any]) -> None:
    problem(client.post(TOKEN, json={"from": "creation", "until": "now"}), 400, "unknown-field")


def test_non_fungible_contract_has_no_history(client: TestClient[Any]) -> None:
    path = f"/v1/tokens/{NFT_TOKEN_ID}/history-requests"
    problem(client.post(path, json={"from": "creation"}), 409, "not-fungible")
    assert client.get(path).json()["data"] == []


@pytest.mark.parametrize(
    ("path", "operation_id"), [(TOKEN, EXAMPLE_TOKEN_OPERATION_ID), (WALLET, EXAMPLE_WALLET_OPERATION_ID)]
)
def test_progress_shows_as_reported(world: World, client: TestClient[Any], path: str, operation_id: str) -> None:
    one = f"{path}/{operation_id}"
    before = client.get(one)
    assert before.json()["progress"] == {"done": 10, "total": 40, "unit": "blocks"}
    assert (before.json()["fromBlock"], before.json()["toBlock"]) == (20, 59)
    assert (before.json()["rate"], before.json()["estimatedEnd"]) == ("2.5", "2026-02-01T01:02:24Z")
    assert client.get(one, headers={"If-None-Match": before.headers["etag"]}).status_code == 304
    end = NOW + timedelta(seconds=4)
    report(world, operation_id, progress_done=30, rate="5", estimated_end=end, note="full would take 3 days")
    after = client.get(one, headers={"If-None-Match": before.headers["etag"]})
    assert after.status_code == 200
    assert after.json()["progress"]["done"] == 30
    assert (after.json()["estimatedEnd"], after.json()["note"]) == ("2026-03-01T12:00:04Z", "full would take 3 days")
    report(world, operation_id, status=Status.FAILED, error="no archive", now=NOW)
    failed = client.get(one).json()
    assert (failed["status"], failed["error"], failed["finishedAt"]) == ("Failed", "no archive", "2026-03-01T12:00:00Z")
    assert failed["estimatedEnd"] is None


def test_request_waiting_for_network_budget_shows_when_it_resumes(world: World, client: TestClient[Any]) -> None:
    one = f"{TOKEN}/{EXAMPLE_TOKEN_OPERATION_ID}"
    report(world, EXAMPLE_TOKEN_OPERATION_ID, result={"waitsUntil": "2026-03-02T00:00:00Z"})
    waiting = client.get(one).json()
    assert (waiting["status"], waiting["resumesAt"]) == ("WaitingForBudget", "2026-03-02T00:00:00Z")
    coverage = client.get(f"/v1/tokens/{EXAMPLE_TOKEN_ID}/coverage").json()
    assert [request["status"] for request in coverage["history"]] == ["WaitingForBudget"]
    report(world, EXAMPLE_TOKEN_OPERATION_ID, result=None)
    running = client.get(one).json()
    assert (running["status"], running["resumesAt"]) == ("Running", None)
    report(world, EXAMPLE_TOKEN_OPERATION_ID, result={"waitsUntil": "2026-03-02T00:00:00Z"}, status=Status.CANCELLED)
    ended = client.get(one).json()
    assert (ended["status"], ended["resumesAt"]) == ("Cancelled", None)


def test_resolved_mode_replaces_the_requested_mode(world: World, client: TestClient[Any]) -> None:
    made = client.post(WALLET, json={"from": "creation", "native": "full"}).json()
    report(world, made["id"], native="balance-only")
    assert client.get(f"{WALLET}/{made['id']}").json()["native"] == "balance-only"


@pytest.mark.parametrize(
    ("path", "operation_id"), [(TOKEN, EXAMPLE_TOKEN_OPERATION_ID), (WALLET, EXAMPLE_WALLET_OPERATION_ID)]
)
def test_cancelling(world: World, client: TestClient[Any], path: str, operation_id: str) -> None:
    one = f"{path}/{operation_id}"
    answer = client.delete(one)
    assert answer.status_code == 202
    assert answer.json()["status"] == "Running"
    assert answer.json()["cancelRequestedAt"] is not None
    assert client.delete(one).json() == answer.json()
    report(world, operation_id, status=Status.CANCELLED)
    assert client.get(one).json()["status"] == "Cancelled"
    problem(client.delete(one), 409, "operation-finished")


def test_lists_are_newest_first(client: TestClient[Any]) -> None:
    made = [client.post(FRESH, json={"from": f"block:{number}"}).json()["id"] for number in range(5)]
    assert [operation["id"] for operation in client.get(FRESH).json()["data"]] == made[::-1]
    cursor = client.get(f"{FRESH}?limit=2").json()["page"]["nextCursor"]
    problem(client.get(f"{TOKEN}?limit=2&cursor={cursor}"), 400, "bad-cursor")


def test_table_and_etag_follow_reported_progress(world: World, client: TestClient[Any]) -> None:
    csv = {"Accept": "text/csv"}
    answer = client.get(TOKEN, headers=csv)
    header, row = answer.text.splitlines()
    assert header.split(",")[:5] == ["id", "status", "progress.done", "progress.total", "progress.unit"]
    assert row.split(",")[:5] == [EXAMPLE_TOKEN_OPERATION_ID, "Running", "10", "40", "blocks"]
    known = {**csv, "If-None-Match": answer.headers["etag"]}
    assert client.get(TOKEN, headers=known).status_code == 304
    report(world, EXAMPLE_TOKEN_OPERATION_ID, progress_done=11)
    assert client.get(TOKEN, headers=known).text.splitlines()[1].split(",")[2] == "11"


def test_request_is_found_only_under_its_own_subject(client: TestClient[Any]) -> None:
    for path in (
        f"/v1/tokens/{BIG_TOKEN_ID}/history-requests/{EXAMPLE_TOKEN_OPERATION_ID}",
        f"{TOKEN}/{EXAMPLE_WALLET_OPERATION_ID}",
        f"{TOKEN}/op_x",
    ):
        problem(client.get(path), 404, "operation-not-found")
        problem(client.delete(path), 404, "operation-not-found")
