"""Discoveries and quarantined prices over HTTP."""

import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from litestar.testing import TestClient

from api.examples import EXAMPLE_MARKET_PAIR_ID, EXAMPLE_PAIR_ID, EXAMPLE_PAIR_OPERATION_ID, EXAMPLE_PRICE_ID
from control.clock import utc_now
from control.operations import Status
from control.snapshot import read_snapshot
from tests.api.pricing import (
    ACCEPTED_PRICE_ID,
    MARKET_PAIR_KEY,
    SMALL_PRICE_ID,
    SOURCE_ID,
    USED_PRICE_ID,
    VAST_PRICE_ID,
)
from tests.api.test_errors import problem
from tests.api.world import World, report

PRICES = f"/v2/pairs/{EXAMPLE_MARKET_PAIR_ID}/prices"
DISCOVERY = f"{PRICES}/discovery"
OPERATIONS = f"{PRICES}/async-operations"
ONE = f"{OPERATIONS}/{EXAMPLE_PAIR_OPERATION_ID}"
QUARANTINED = f"{PRICES}/quarantined"
BODY = {"from": "2026-01-01", "to": "2026-01-02T06:00:00+01:00", "windowSize": "hour"}


def test_discovery_is_stored_in_canonical_form(client: TestClient[Any]) -> None:
    before = utc_now()
    answer = client.post(DISCOVERY, json=BODY)
    assert answer.status_code == 202
    made = answer.json()
    assert answer.headers["location"] == f"{OPERATIONS}/{made['id']}"
    created = datetime.fromisoformat(made.pop("createdAt"))
    assert before <= created <= utc_now()
    assert made == {
        "id": made["id"],
        "status": "Pending",
        "progress": {"done": 0, "total": None, "unit": "windows"},
        "from": "2026-01-01T00:00:00Z",
        "to": "2026-01-02T05:00:00Z",
        "windowSize": "hour",
        "multiplier": "1",
        "pricesStored": 0,
        "missing": [],
        "note": None,
        "error": None,
        "startedAt": None,
        "cancelRequestedAt": None,
        "finishedAt": None,
    }
    assert client.get(answer.headers["location"]).json() == answer.json()
    listed = client.get(OPERATIONS).json()["data"]
    assert [operation["id"] for operation in listed] == [made["id"], EXAMPLE_PAIR_OPERATION_ID]


@pytest.mark.parametrize(
    ("text", "canonical"), [("0.5", "0.5"), (0.25, "0.25"), (2, "2"), ("1.50", "1.5"), ("1e2", "100")]
)
def test_multiplier_is_exact_in_every_notation(client: TestClient[Any], text: Any, canonical: str) -> None:
    assert client.post(DISCOVERY, json=BODY | {"multiplier": text}).json()["multiplier"] == canonical


def test_end_in_the_future_becomes_now(client: TestClient[Any]) -> None:
    future = (datetime.now(UTC) + timedelta(days=400)).date().isoformat()
    before = utc_now()
    made = client.post(DISCOVERY, json=BODY | {"to": future, "windowSize": "day"}).json()
    assert before.replace(microsecond=0) <= datetime.fromisoformat(made["to"]) <= utc_now()
    assert future in made["note"]


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"from": 5}, "/from"),
        ({"to": "2026-01-01"}, "/to"),
        ({"multiplier": "one"}, "/multiplier"),
        ({"multiplier": None}, "/multiplier"),
    ],
)
def test_invalid_fields_are_named(client: TestClient[Any], change: dict[str, Any], pointer: str) -> None:
    before = client.get(OPERATIONS).json()
    found = problem(client.post(DISCOVERY, json=BODY | change), 422, "invalid-body")
    assert [error["pointer"] for error in found["errors"]] == [pointer]
    assert client.get(OPERATIONS).json() == before


def test_malformed_instants_are_named(client: TestClient[Any]) -> None:
    for field in ("from", "to"):
        found = problem(client.post(DISCOVERY, json=BODY | {field: "creation"}), 400, "malformed-field")
        assert [error["pointer"] for error in found["errors"]] == [f"/{field}"]


def test_missing_and_unknown_fields_are_refused(client: TestClient[Any]) -> None:
    found = problem(client.post(DISCOVERY, json={}), 422, "invalid-body")
    assert [error["pointer"] for error in found["errors"]] == ["/from", "/to", "/windowSize"]
    problem(client.post(DISCOVERY, json=BODY | {"window": "day"}), 400, "unknown-field")


def test_pair_without_price_history_is_refused_with_the_reason(client: TestClient[Any]) -> None:
    path = f"/v2/pairs/{EXAMPLE_PAIR_ID}/prices/discovery"
    found = problem(client.post(path, json=BODY), 422, "invalid-body")
    assert "Fund desk is manual" in found["detail"]
    client.patch("/v2/price-sources/src_kraken/disable")
    assert "Kraken is disabled" in problem(client.post(DISCOVERY, json=BODY), 422, "invalid-body")["detail"]


def test_progress_and_gaps_show_as_reported(world: World, client: TestClient[Any]) -> None:
    before = client.get(ONE)
    found = before.json()
    assert found["progress"] == {"done": 5, "total": 10, "unit": "windows"}
    assert found["pricesStored"] == 3
    gap = {"from": "2026-01-02T00:00:00Z", "to": "2026-01-04T00:00:00Z", "priceSource": SOURCE_ID}
    assert found["missing"] == [gap]
    tables = [client.get(OPERATIONS, headers={"Accept": "text/csv"}) for _ in range(2)]
    assert tables[0].headers["etag"] == tables[1].headers["etag"]
    result = {"pricesStored": 8, "missing": [gap, gap | {"to": "2026-01-05T00:00:00Z"}]}
    report(world, EXAMPLE_PAIR_OPERATION_ID, status=Status.SUCCEEDED, progress_done=10, result=result)
    done = client.get(ONE, headers={"If-None-Match": before.headers["etag"]}).json()
    assert (done["status"], done["pricesStored"], len(done["missing"])) == ("Succeeded", 8, 2)
    assert done["finishedAt"]
    table = client.get(OPERATIONS, headers={"Accept": "text/csv", "If-None-Match": tables[0].headers["etag"]})
    (row,) = csv.DictReader(io.StringIO(table.text))
    assert (row["pricesStored"], row["progress.unit"]) == ("8", "windows")


def test_only_unfinished_discovery_can_be_cancelled(world: World, client: TestClient[Any]) -> None:
    answer = client.delete(ONE)
    assert (answer.status_code, answer.json()["status"]) == (202, "Running")
    assert answer.json()["cancelRequestedAt"]
    assert client.delete(ONE).json() == answer.json()
    with world.store.read() as session:
        (seen,) = read_snapshot(session, 0).tables["control_price_discoveries"]
    assert seen.is_cancelled
    report(world, EXAMPLE_PAIR_OPERATION_ID, status=Status.CANCELLED)
    problem(client.delete(ONE), 409, "operation-finished")
    assert client.get(ONE).json()["status"] == "Cancelled"


def test_discovery_is_found_only_under_its_pair(client: TestClient[Any]) -> None:
    other = f"/v2/pairs/{EXAMPLE_PAIR_ID}/prices/async-operations"
    assert client.get(other).json()["data"] == []
    problem(client.get(f"{other}/{EXAMPLE_PAIR_OPERATION_ID}"), 404, "operation-not-found")
    problem(client.delete(f"{other}/{EXAMPLE_PAIR_OPERATION_ID}"), 404, "operation-not-found")
    problem(client.get(f"{OPERATIONS}/op_{'0' * 26}"), 404, "operation-not-found")


def test_quarantined_prices_are_listed_newest_first(client: TestClient[Any]) -> None:
    answer = client.get(QUARANTINED).json()
    assert [row["id"] for row in answer["data"]] == [VAST_PRICE_ID, SMALL_PRICE_ID, EXAMPLE_PRICE_ID]
    assert answer["asOf"] == {"dataVersion": 1}
    assert answer["data"][2] == {
        "id": EXAMPLE_PRICE_ID,
        "price": "1000000.1",
        "effectiveFrom": "2026-01-22T00:00:00Z",
        "windowStart": None,
        "isPartial": False,
        "priceSource": SOURCE_ID,
        "derivation": "Direct",
        "reason": "Jump",
        "decision": None,
    }
    assert client.get(f"/v2/pairs/{EXAMPLE_PAIR_ID}/prices/quarantined").json()["data"] == []


def test_a_decision_is_stored_shown_and_may_change(world: World, client: TestClient[Any]) -> None:
    path = f"{QUARANTINED}/{EXAMPLE_PRICE_ID}"
    answer = client.post(f"{path}/accept")
    assert answer.status_code == 200
    assert answer.json() == client.get(QUARANTINED).json()["data"][2]
    assert answer.json()["decision"] == "Accepted"
    assert client.post(f"{path}/accept").json() == answer.json()
    assert client.post(f"{path}/reject").json()["decision"] == "Rejected"
    with world.store.read() as session:
        found = {row.price_id: row.decision for row in read_snapshot(session, 0).tables["control_price_reviews"]}
        assert {row.pair_key for row in read_snapshot(session, 0).tables["control_price_reviews"]} == {MARKET_PAIR_KEY}
    assert found == {ACCEPTED_PRICE_ID: "Accepted", EXAMPLE_PRICE_ID: "Rejected"}
    events = client.get(f"/v1/audit-events?objectId={EXAMPLE_MARKET_PAIR_ID}").json()["data"]
    assert [(event["action"], event["after"]["decision"]) for event in events] == [
        ("price-pair.review", "Rejected"),
        ("price-pair.review", "Accepted"),
    ]


def test_accepted_price_can_still_be_rejected(client: TestClient[Any]) -> None:
    answer = client.post(f"{QUARANTINED}/{ACCEPTED_PRICE_ID}/reject")
    assert (answer.status_code, answer.json()["decision"]) == (200, "Rejected")


def test_only_quarantined_prices_of_the_pair_can_be_decided(client: TestClient[Any]) -> None:
    for price_id in (USED_PRICE_ID, "price_" + "e" * 32, "x", "%00"):
        for word in ("accept", "reject"):
            problem(client.post(f"{QUARANTINED}/{price_id}/{word}"), 404, "quarantined-price-not-found")
    other = f"/v2/pairs/{EXAMPLE_PAIR_ID}/prices/quarantined/{EXAMPLE_PRICE_ID}/accept"
    problem(client.post(other), 404, "quarantined-price-not-found")


def test_too_large_price_can_only_be_rejected(client: TestClient[Any]) -> None:
    path = f"{QUARANTINED}/{VAST_PRICE_ID}"
    found = problem(client.post(f"{path}/accept"), 409, "price-out-of-range")
    assert "123456789012345678901234567890.5" in found["detail"]
    assert client.post(f"{path}/reject").json()["decision"] == "Rejected"
