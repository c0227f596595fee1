"""Attestations over HTTP: requests, refusals, progress, cancelling, and lists of records."""

from datetime import datetime
from typing import Any

import pytest
from litestar.testing import TestClient

from api.examples import (
    EXAMPLE_TOKEN_ATTESTATION_ID,
    EXAMPLE_TOKEN_ID,
    EXAMPLE_WALLET_ATTESTATION_ID,
    EXAMPLE_WALLET_ID,
)
from control.clock import utc_now
from control.operations import Status
from tests.api.marts import publish
from tests.api.test_errors import problem
from tests.api.world import (
    BIG_TOKEN_ID,
    FOREIGN_TOKEN_ID,
    FOREIGN_WALLET_ID,
    FRESH_TOKEN_ID,
    NFT_TOKEN_ID,
    World,
    marts_rows,
    report,
    time_of,
)

TOKEN = f"/v1/tokens/{EXAMPLE_TOKEN_ID}/attestations"
WALLET = f"/v1/wallets/{EXAMPLE_WALLET_ID}/attestations"
BOTH = [(TOKEN, EXAMPLE_TOKEN_ATTESTATION_ID), (WALLET, EXAMPLE_WALLET_ATTESTATION_ID)]
SUPPLY = str(2**256 - 1)


def record(world: World, subject_id: str, number: int, block: int, **values: Any) -> dict[str, Any]:
    caller = "foreign" if subject_id in (FOREIGN_TOKEN_ID, FOREIGN_WALLET_ID) else "admin"
    is_token = subject_id.startswith("tok")
    return {
        "tenant_id": world.principals[caller].tenant_id,
        "subject_key": world.subject_keys[subject_id],
        "attestation_number": number,
        "block_number": block,
        "block_hash": f"0x{block:064x}",
        "block_time": time_of(block).replace(tzinfo=None),
        "is_automatic": False,
        "status": "Adjusted",
        "balance_count": 3,
        "read_count": 2,
        "difference_count": 1,
        "unconfirmed_count": 0,
        "balances_raw": SUPPLY if is_token else None,
        "balances": SUPPLY if is_token else None,
        "total_supply_raw": "160" if is_token else None,
        "total_supply": "160" if is_token else None,
        "supply_difference_raw": "-5" if is_token else None,
        "supply_difference": "-5" if is_token else None,
        "attested_at": time_of(400).replace(tzinfo=None),
        "is_superseded": False,
        "superseded_by": None,
        **values,
    }


@pytest.fixture
def attested(world: World, client: TestClient[Any]) -> TestClient[Any]:
    """A client of a version with attestation records; block 160 has a superseded and a valid one."""
    superseded = {"is_superseded": True, "superseded_by": "NewHolder", "is_automatic": True}
    rows = [
        record(world, EXAMPLE_TOKEN_ID, 1, 160, **superseded),
        record(world, EXAMPLE_TOKEN_ID, 2, 120),
        record(world, EXAMPLE_TOKEN_ID, 3, 160),
        record(world, EXAMPLE_TOKEN_ID, 4, 300),
        record(world, EXAMPLE_WALLET_ID, 1, 160),
        record(world, FOREIGN_TOKEN_ID, 1, 130),
    ]
    publish(world.settings.serving_dir, 2, marts_rows(world) | {"attestations": rows})
    return client


@pytest.mark.parametrize("path", [TOKEN, WALLET])
def test_attestation_is_stored_as_requested(client: TestClient[Any], path: str) -> None:
    before = utc_now()
    answer = client.post(path, json={"asOf": "2026-02-01T02:10:00+02:00"})
    assert answer.status_code == 202, answer.text
    made = answer.json()
    assert answer.headers["location"] == f"{path}/{made['id']}"
    created = datetime.fromisoformat(made.pop("createdAt"))
    assert before <= created <= utc_now()
    assert made == {
        "id": made["id"],
        "status": "Pending",
        "progress": {"done": 0, "total": None, "unit": "balances"},
        "resumesAt": None,
        "asOf": "2026-02-01T00:10:00Z",
        "blockNumber": None,
        "attestationNumber": None,
        "error": None,
        "startedAt": None,
        "cancelRequestedAt": None,
        "finishedAt": None,
    }
    assert client.get(answer.headers["location"]).json() == answer.json()
    (event,) = [one for one in client.get("/v1/audit-events").json()["data"] if one["action"] == "attestation.request"]
    assert event["after"]["asOf"] == "2026-02-01T00:10:00Z"


@pytest.mark.parametrize(
    ("as_of", "status", "code"),
    [
        ("last week", 400, "malformed-field"),
        ("2026-02-30", 400, "malformed-field"),
        (f"block:{2**63}", 422, "invalid-body"),
        ("2100-01-01", 422, "invalid-body"),
        ("9999-12-31", 422, "invalid-body"),
        (None, 422, "invalid-body"),
        ("block:225", 409, "not-covered"),
        ("block:405", 409, "not-covered"),
        (time_of(225).isoformat(), 409, "not-covered"),
        ("2020-01-01", 409, "not-covered"),
    ],
)
def test_invalid_moments_are_refused(client: TestClient[Any], as_of: str | None, status: int, code: str) -> None:
    for path in (TOKEN, WALLET):
        for body in ({"asOf": as_of}, {"asOf": as_of, "dryRun": True}):
            found = problem(client.post(path, json=body), status, code)
            assert [error["pointer"] for error in found["errors"]] == ["/asOf"]


def test_uncovered_moment_names_the_covered_neighbours_and_gaps(client: TestClient[Any]) -> None:
    found = problem(client.post(TOKEN, json={"asOf": time_of(225).isoformat()}), 409, "not-covered")
    assert time_of(100) < datetime.fromisoformat(found["before"]) < time_of(225)
    assert datetime.fromisoformat(found["after"]) == time_of(251)
    coverage = client.get(f"/v1/tokens/{EXAMPLE_TOKEN_ID}/coverage").json()
    assert found["gaps"] == [gap for gap in coverage["gaps"] if gap["fromBlock"] <= 225 <= gap["toBlock"]]
    beyond = problem(client.post(TOKEN, json={"asOf": "block:99999"}), 409, "not-covered")["gaps"]
    assert [(gap["to"], gap["toBlock"], gap["reason"]) for gap in beyond] == [(None, None, "NotYetCollected")]
    never = problem(
        client.post(f"/v1/tokens/{FRESH_TOKEN_ID}/attestations", json={"asOf": "block:150"}), 409, "not-covered"
    )
    assert (never["before"], never["after"]) == (None, None)
    assert [gap["reason"] for gap in never["gaps"]] == ["NeverTracked"]
    problem(client.post(f"/v1/tokens/{NFT_TOKEN_ID}/attestations", json={"asOf": "block:150"}), 409, "not-fungible")


def test_node_without_archive_refuses_attestation(world: World, client: TestClient[Any]) -> None:
    rows = marts_rows(world)
    networks = [{**row, "has_archive": False} for row in rows["networks"]]
    publish(world.settings.serving_dir, 2, rows | {"networks": networks})
    for path in (TOKEN, WALLET):
        for dry_run in (True, False):
            found = problem(client.post(path, json={"asOf": "block:120", "dryRun": dry_run}), 422, "no-archive")
            assert [error["pointer"] for error in found["errors"]] == ["/asOf"]


def test_same_moment_again_returns_the_running_attestation(world: World, client: TestClient[Any]) -> None:
    first = client.post(TOKEN, json={"asOf": "block:120"}).json()
    assert client.post(TOKEN, json={"asOf": "block:120"}).json() == first
    report(world, first["id"], status=Status.RUNNING, to_block=120, progress_done=1, progress_total=3)
    running = client.post(TOKEN, json={"asOf": "block:120"}).json()
    assert (running["id"], running["status"], running["blockNumber"]) == (first["id"], "Running", 120)
    assert client.post(TOKEN, json={"asOf": "block:121"}).json()["id"] != first["id"]
    assert client.post(WALLET, json={"asOf": "block:120"}).json()["id"] != first["id"]
    client.delete(f"{TOKEN}/{first['id']}")
    assert client.post(TOKEN, json={"asOf": "block:120"}).json()["id"] != first["id"]


@pytest.mark.parametrize("status", [Status.FAILED, Status.SUCCEEDED])
def test_moment_without_valid_record_creates_a_new_attestation(
    world: World, attested: TestClient[Any], status: Status
) -> None:
    first = attested.post(TOKEN, json={"asOf": "block:121"}).json()
    report(world, first["id"], status=status, to_block=121)
    assert attested.post(TOKEN, json={"asOf": "block:121"}).json()["id"] != first["id"]


def test_moment_with_valid_record_returns_the_existing_attestation(world: World, attested: TestClient[Any]) -> None:
    for block in (160, 120):
        first = attested.post(TOKEN, json={"asOf": f"block:{block}"}).json()
        report(world, first["id"], status=Status.SUCCEEDED, to_block=block, result={"attestationNumber": 3})
        again = attested.post(TOKEN, json={"asOf": f"block:{block}"}).json()
        assert (again["id"], again["status"], again["attestationNumber"]) == (first["id"], "Succeeded", 3)


def test_records_are_listed_newest_block_first(attested: TestClient[Any]) -> None:
    answer = attested.get(TOKEN)
    records = answer.json()["data"]
    assert [(one["blockNumber"], one["number"]) for one in records] == [(300, 4), (160, 3), (160, 1), (120, 2)]
    assert [one["superseded"] for one in records] == [False, False, True, False]
    assert records[2] == {
        "number": 1,
        "blockNumber": 160,
        "blockHash": f"0x{160:064x}",
        "blockTime": time_of(160).isoformat().replace("+00:00", "Z"),
        "status": "Adjusted",
        "holders": 3,
        "holdersRead": 2,
        "differences": 1,
        "unconfirmed": 0,
        "sumOfBalances": SUPPLY,
        "sumOfBalancesRaw": SUPPLY,
        "totalSupply": "160",
        "totalSupplyRaw": "160",
        "supplyDifference": "-5",
        "supplyDifferenceRaw": "-5",
        "automatic": True,
        "attestedAt": time_of(400).isoformat().replace("+00:00", "Z"),
        "superseded": True,
        "supersededBy": "NewHolder",
    }
    (wallet,) = attested.get(WALLET).json()["data"]
    assert (wallet["assets"], wallet["assetsRead"]) == (3, 2)
    assert "sumOfBalances" not in wallet
    assert attested.get(f"/v1/tokens/{BIG_TOKEN_ID}/attestations").json()["data"] == []


@pytest.mark.parametrize(("path", "operation_id"), BOTH)
def test_watching_and_cancelling(world: World, client: TestClient[Any], path: str, operation_id: str) -> None:
    one = f"{path}/{operation_id}"
    assert client.get(one).json()["progress"] == {"done": 2, "total": 4, "unit": "balances"}
    report(world, operation_id, result={"waitsUntil": "2026-03-02T00:00:00Z", "attestationNumber": 9})
    waiting = client.get(one).json()
    assert (waiting["status"], waiting["resumesAt"]) == ("WaitingForBudget", "2026-03-02T00:00:00Z")
    answer = client.delete(one)
    assert answer.status_code == 202
    assert answer.json()["cancelRequestedAt"] is not None
    report(world, operation_id, status=Status.CANCELLED)
    assert client.get(one).json()["status"] == "Cancelled"
    problem(client.delete(one), 409, "operation-finished")


def test_dry_run_returns_the_estimate_and_stores_nothing(world: World, client: TestClient[Any]) -> None:
    before = client.get("/v1/audit-events").json()
    unknown = client.post(TOKEN, json={"asOf": "block:120", "dryRun": True})
    assert unknown.status_code == 200
    assert unknown.json()["status"] == "NothingObserved"
    assert unknown.json()["readings"] > 0
    assert [unknown.json()[name] for name in ("requests", "bytes", "seconds")] == [None, None, None]
    pace = {"network": "ethereum", "work": "balances", "requests_per_million": 500_000}
    pace |= {"answer_bytes_per_million": 70_000_000, "milliseconds_per_million": 300_000_000}
    publish(world.settings.serving_dir, 2, marts_rows(world) | {"collection_paces": [pace]})
    world.clock.look_again()
    known = client.post(TOKEN, json={"asOf": "block:120", "dryRun": True}, headers={"Idempotency-Key": "a-1"}).json()
    readings = unknown.json()["readings"]
    assert known == {
        "status": "Estimated",
        "detail": None,
        "readings": readings,
        "requests": -(-readings // 2),
        "bytes": readings * 70,
        "seconds": -(-readings * 3 // 10),
        "maxRequestsPerDay": 5000,
    }
    assert client.get("/v1/audit-events").json() == before
    # The dry run did not consume the idempotency key.
    made = client.post(TOKEN, json={"asOf": "block:120"}, headers={"Idempotency-Key": "a-1"})
    assert made.status_code == 202


def test_dry_run_without_holders(world: World, client: TestClient[Any]) -> None:
    publish(world.settings.serving_dir, 2, marts_rows(world) | {"balance_changes": []})
    for path, readings in ((WALLET, 0), (TOKEN, 1)):
        assert client.post(path, json={"asOf": "block:120", "dryRun": True}).json()["readings"] == readings


def test_attestation_is_found_only_under_its_own_subject(client: TestClient[Any]) -> None:
    for path in (f"{TOKEN}/{EXAMPLE_WALLET_ATTESTATION_ID}", f"{WALLET}/{EXAMPLE_TOKEN_ATTESTATION_ID}"):
        problem(client.get(path), 404, "operation-not-found")
        problem(client.delete(path), 404, "operation-not-found")
    history = f"/v1/tokens/{EXAMPLE_TOKEN_ID}/history-requests/{EXAMPLE_TOKEN_ATTESTATION_ID}"
    problem(client.get(history), 404, "operation-not-found")
