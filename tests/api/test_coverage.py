"""Coverage of a subject: collected ranges, gaps and their reasons, in `/coverage` and in every analytical response."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from litestar.testing import TestClient

from api.examples import (
    EXAMPLE_LEDGER,
    EXAMPLE_TOKEN_ID,
    EXAMPLE_TOKEN_OPERATION_ID,
    EXAMPLE_WALLET_ID,
    EXAMPLE_WALLET_OPERATION_ID,
)
from control import operations, tokens
from control.models import TrackingWindow
from control.operations import HistoryRequest
from tests.api.marts import publish
from tests.api.test_errors import problem
from tests.api.world import FRESH_TOKEN_ID, HOLDERS, NFT_TOKEN_ID, World, hash_of, marts_rows, time_of

REFUSING = "0x" + "9f" * 20
TOKEN, WALLET = f"/v1/tokens/{EXAMPLE_TOKEN_ID}", f"/v1/wallets/{EXAMPLE_WALLET_ID}"
Range = tuple[int, int | None, str | None]


def stamp(block: int) -> str:
    return f"{time_of(block):%Y-%m-%dT%H:%M:%SZ}"


def coverage_rows(world: World, subject_id: str, ranges: Sequence[Range]) -> list[dict[str, Any]]:
    """Return rows of the mart; blocks of gaps have no stored time. A reason of None means a covered range."""
    rows = []
    for first, last, reason in ranges:
        is_stored = reason is None
        rows.append(
            {
                "tenant_id": world.tenant_id,
                "subject_key": world.subject_keys[subject_id],
                "from_block": first,
                "to_block": last,
                "from_time": time_of(first).replace(tzinfo=None) if is_stored else None,
                "to_time": time_of(last).replace(tzinfo=None) if is_stored and last is not None else None,
                "is_covered": reason is None,
                "reason": reason,
                "verified": "true" if reason is None else None,
                "source": "node" if reason is None else None,
            }
        )
    return rows


def publish_coverage(world: World, subject_id: str, ranges: Sequence[Range], **more: Any) -> None:
    """Republish version 1 with this coverage of a subject; `more` replaces whole tables."""
    rows = marts_rows(world)
    key = world.subject_keys[subject_id]
    rows["coverage"] = [row for row in rows["coverage"] if row["subject_key"] != key]
    rows["coverage"] += coverage_rows(world, subject_id, ranges)
    publish(world.settings.serving_dir, 1, rows | more)


def text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def gaps(answer: dict[str, Any]) -> list[tuple[str | None, str | None, str]]:
    return [(gap["from"], gap["to"], gap["reason"]) for gap in answer["gaps"]]


@pytest.mark.parametrize(
    ("path", "operation_id", "source"),
    [(TOKEN, EXAMPLE_TOKEN_OPERATION_ID, "aws"), (WALLET, EXAMPLE_WALLET_OPERATION_ID, "aws, node")],
)
def test_coverage_lists_windows_history_collected_ranges_and_gaps(
    client: TestClient[Any], path: str, operation_id: str, source: str
) -> None:
    answer = client.get(f"{path}/coverage").json()
    assert answer == {
        "windows": [{"from": stamp(100), "to": stamp(201)}, {"from": stamp(251), "to": None}],
        "history": [
            {
                "operationId": operation_id,
                "from": "block:20",
                "to": "block:59",
                "fromBlock": 20,
                "toBlock": 59,
                "status": "Running",
            }
        ],
        "collected": [
            {
                "from": stamp(100),
                "to": stamp(200),
                "fromBlock": 100,
                "toBlock": 200,
                "verified": "true",
                "source": source,
            },
            {
                "from": stamp(251),
                "to": stamp(400),
                "fromBlock": 251,
                "toBlock": 400,
                "verified": "sampled",
                "source": "node",
            },
        ],
        "gaps": [
            {"from": None, "to": stamp(100), "fromBlock": 1, "toBlock": 99, "reason": "BeforeTracking"},
            {"from": stamp(200), "to": stamp(251), "fromBlock": 201, "toBlock": 250, "reason": "TrackingDisabled"},
            {"from": stamp(401), "to": stamp(410), "fromBlock": 401, "toBlock": 410, "reason": "NotYetCollected"},
        ],
        "asOf": {
            "ledger": EXAMPLE_LEDGER,
            "blockNumber": 400,
            "blockHash": hash_of(400),
            "blockTime": stamp(400),
            "finality": "Confirmed",
            "at": stamp(400),
            "dataVersion": 1,
        },
    }


# Running history request of blocks 20 to 69: 20 to 29 and 50 to 59 are collected, the provider failed at 60.
_FILLING: list[Range] = [
    (1, 19, "BeforeTracking"),
    (20, 29, None),
    (30, 49, "NotYetCollected"),
    (50, 59, None),
    (60, 69, "ProviderFailed"),
    (70, 99, "TrackingDisabled"),
    (100, 200, None),
    (201, 250, "TrackingDisabled"),
    (251, 400, None),
    (401, 410, "NotYetCollected"),
]
_HOLES = [
    (stamp(29), stamp(50), "NotYetCollected"),
    (stamp(59), stamp(100), "ProviderFailed"),
    (stamp(59), stamp(100), "TrackingDisabled"),
    (stamp(200), stamp(251), "TrackingDisabled"),
]


def test_holes_while_history_is_collected(world: World) -> None:
    publish_coverage(world, EXAMPLE_TOKEN_ID, _FILLING)
    with world.client() as client:
        for path in ("activities", "cap-table"):
            coverage = client.get(f"{TOKEN}/{path}").json()["coverage"]
            assert (coverage["complete"], coverage["from"], coverage["to"]) == (False, stamp(20), stamp(400))
            assert gaps(coverage) == _HOLES
            assert [(gap["fromBlock"], gap["toBlock"]) for gap in coverage["gaps"]] == [
                (30, 49),
                (60, 69),
                (70, 99),
                (201, 250),
            ]
        assert [gap["reason"] for gap in client.get(f"{TOKEN}/coverage").json()["gaps"]] == [
            reason for _, _, reason in _FILLING if reason
        ]
        before = client.get(f"{TOKEN}/activities?from={stamp(10)}&to={stamp(100)}").json()["coverage"]
        assert [gap["reason"] for gap in before["gaps"]] == [
            "BeforeTracking",
            "NotYetCollected",
            "ProviderFailed",
            "TrackingDisabled",
        ]
        inside = client.get(f"{TOKEN}/activities?from={stamp(50)}&to={stamp(59)}").json()["coverage"]
        assert inside == {"complete": True, "from": stamp(50), "to": stamp(59), "gaps": []}


@pytest.mark.parametrize(
    ("block", "before", "after"),
    [(19, None, 20), (30, 29, 50), (49, 29, 50), (65, 59, 100), (99, 59, 100), (220, 200, 251)],
)
def test_moments_in_holes(world: World, block: int, before: int | None, after: int) -> None:
    publish_coverage(world, EXAMPLE_TOKEN_ID, _FILLING)
    with world.client() as client:
        shown = client.get(f"{TOKEN}/coverage").json()["gaps"]
        for moment in (f"block:{block}", stamp(block)):
            found = problem(client.get(f"{TOKEN}/cap-table?asOf={moment}"), 409, "not-covered")
            assert (found["before"], found["after"]) == (None if before is None else stamp(before), stamp(after))
            assert [error["parameter"] for error in found["errors"]] == ["asOf"]
            # The gap as listed in the coverage; a time between blocks may match several gaps.
            own = [gap for gap in shown if gap["fromBlock"] <= block <= gap["toBlock"]]
            of_time = [gap for gap in shown if (gap["from"], gap["to"]) == (own[0]["from"], own[0]["to"])]
            assert found["gaps"] == (own if moment.startswith("block") else of_time)


def test_every_covered_range_has_balances(world: World) -> None:
    """Each range opens with its own readings; no balance is carried over a gap."""
    rows = marts_rows(world)
    sample = next(row for row in rows["balance_changes"] if row["subject_key"] == world.subject_keys[EXAMPLE_TOKEN_ID])
    added = [
        sample
        | {
            "range_from_block": first,
            "block_number": block,
            "holder_address": HOLDERS[name],
            "balance_raw": raw,
            "balance": str(raw),
        }
        for first, block, name, raw in (
            (20, 19, "h1", 11),
            (20, 25, "h2", 12),
            (50, 49, "h1", 13),
            (50, 55, "h3", 14),
        )
    ]
    publish_coverage(world, EXAMPLE_TOKEN_ID, _FILLING, balance_changes=rows["balance_changes"] + added)
    names = {address: name for name, address in HOLDERS.items()}
    with world.client() as client:
        for block, expected in (
            (20, {"h1": "11"}),
            (29, {"h2": "12", "h1": "11"}),
            (50, {"h1": "13"}),
            (59, {"h3": "14", "h1": "13"}),
            (100, {"h1": "100", "h2": "50"}),
        ):
            table = client.get(f"{TOKEN}/cap-table?asOf=block:{block}").json()
            assert {names[row["wallet"]]: row["quantity"] for row in table["data"]} == expected
            assert table["holderCount"] == len(expected)


def test_gap_at_the_start_of_a_window(world: World) -> None:
    ranges: list[Range] = [(1, 99, "BeforeTracking"), (100, 109, "ProviderFailed"), (110, 400, None)]
    publish_coverage(world, EXAMPLE_TOKEN_ID, ranges)
    with world.client() as client:
        coverage = client.get(f"{TOKEN}/activities").json()["coverage"]
    assert [(gap["fromBlock"], gap["to"], gap["reason"]) for gap in coverage["gaps"]] == [
        (100, stamp(110), "ProviderFailed")
    ]


def test_moment_of_a_block_without_stored_time(client: TestClient[Any]) -> None:
    """The coverage then has no end time and still omits gaps after the moment."""
    coverage = client.get(f"{TOKEN}/cap-table?asOf=block:149").json()["coverage"]
    assert coverage == {"complete": True, "from": stamp(100), "to": None, "gaps": []}
    coverage = client.get(f"{TOKEN}/cap-table?asOf=block:260").json()["coverage"]
    assert [gap["fromBlock"] for gap in coverage["gaps"]] == [201]


def test_coverage_of_a_token_with_history_requests_only(world: World) -> None:
    """A never tracked token; blocks outside its history request are `NeverTracked`."""
    with world.store.write() as session:
        principal = world.principals["admin"]
        for start in ("block:20", "creation"):
            token = tokens.get(session, world.tenant_id, NFT_TOKEN_ID)
            operations.request_history(
                session, principal, token, HistoryRequest(from_=start, to="block:59", native=None)
            )
    rows = marts_rows(world)
    facts = {"as_of_block_number": 59, "as_of_finality": "Finalized", "contract_status": "Fungible"}
    rows["tokens"] = [row | (facts if row["token_id"] == NFT_TOKEN_ID else {}) for row in rows["tokens"]]
    publish_coverage(
        world,
        NFT_TOKEN_ID,
        [(1, 19, "NeverTracked"), (20, 59, None), (60, 410, "NeverTracked")],
        tokens=rows["tokens"],
    )
    path = f"/v1/tokens/{NFT_TOKEN_ID}"
    with world.client() as client:
        answer = client.get(f"{path}/coverage").json()
        assert (answer["windows"], answer["asOf"]["blockNumber"]) == ([], 59)
        assert [(one["from"], one["fromBlock"], one["status"]) for one in answer["history"]] == [
            ("block:20", None, "Pending"),
            ("creation", None, "Pending"),
        ]
        assert gaps(answer) == [(None, stamp(20), "NeverTracked"), (stamp(59), None, "NeverTracked")]
        assert client.get(f"{path}/cap-table").json()["coverage"]["complete"] is True
        later = client.get(f"{path}/activities?from={stamp(50)}&to=2030-01-01").json()["coverage"]
        assert gaps(later) == [(stamp(59), "2030-01-01T00:00:00Z", "NeverTracked")]
        problem(client.get(f"{path}/cap-table?asOf=block:60"), 409, "not-covered")


def test_position_of_a_wallet_without_collected_data_is_null(client: TestClient[Any]) -> None:
    wallet = {"ledger": EXAMPLE_LEDGER, "ledgerId": "0x" + "9e" * 20}
    path = f"/v1/wallets/{client.post('/v1/wallets', json=wallet).json()['id']}"
    assert client.get(f"{path}/balances").json()["current"] == []
    client.put(f"{path}/tracking", json={"trackingStatus": "enabled"})
    answer = client.get(f"{path}/balances").json()
    (position,) = answer["current"]
    assert position["token"]["ledgerId"] == "native"
    numbers = ("quantity", "quantityRaw", "value", "price", "checkedBlockNumber", "openedBy")
    assert [position[name] for name in numbers] == [None] * 6
    assert (position["quantityStatus"], position["valueStatus"]) == ("NotYetCollected", "NotCovered")
    assert (answer["holdingsComplete"], answer["coverage"]["complete"]) == (False, False)
    shown = client.get(path).json()
    names = ("totalValue", "totalValueStatus", "valueComplete")
    assert [shown[name] for name in names] == [None, "NotCovered", False]


def test_a_balance_that_cannot_be_read_is_null_with_its_reason_at_every_moment_of_its_range(world: World) -> None:
    rows = marts_rows(world)
    (wallet,) = [row for row in rows["wallets"] if row["wallet_id"] == EXAMPLE_WALLET_ID]
    keys = {name: wallet[name] for name in ("tenant_id", "subject_key")}
    unread = keys | {"token_address": REFUSING, "token_symbol": "NAY"}
    reason = "eth_call: execution halted"
    rows["unread_balances"] = [unread | {"range_from_block": 251, "reason": reason}]
    rows["wallet_balances"].append(unread | {"reconciliation": "Unchecked", "unread_reason": reason})
    publish(world.settings.serving_dir, 2, rows)
    path = f"/v1/wallets/{EXAMPLE_WALLET_ID}"
    with world.client() as client:

        def shown(parameters: str = "") -> list[dict[str, Any]]:
            found = client.get(f"{path}/balances{parameters}").json()["current"]
            return [one for one in found if one["token"]["symbol"] == "NAY"]

        for parameters in ("", "?asOf=block:300"):
            (position,) = shown(parameters)
            numbers = ("quantity", "quantityRaw", "value", "openedBy", "checkedBlockNumber")
            assert [position[name] for name in numbers] == [None] * 5
            assert [position[name] for name in ("quantityStatus", "detail", "valueStatus", "reconciliation")] == [
                "NotYetCollected",
                reason,
                "NotCovered",
                "Unchecked",
            ]
        assert shown("?asOf=block:150") == []
        others = [one for one in client.get(f"{path}/balances").json()["current"] if one["token"]["symbol"] != "NAY"]
        assert {(one["quantityStatus"], one["detail"]) for one in others} == {("Known", None)}
        for interval in ("1d", "1h"):
            asked = f"{path}/value-history?interval={interval}&from={stamp(100)}&to={stamp(320)}"
            points = [point for point in client.get(asked).json()["points"] if point["valueStatus"] != "NotCovered"]
            assert {"NAY" in point["unpriced"] for point in points} == {True}


def test_coverage_of_a_token_without_collected_data(world: World, client: TestClient[Any]) -> None:
    path = f"/v1/tokens/{FRESH_TOKEN_ID}"
    answer = client.get(f"{path}/coverage").json()
    assert (answer["windows"], answer["history"], answer["collected"], gaps(answer)) == (
        [],
        [],
        [],
        [(None, None, "NeverTracked")],
    )
    assert answer["asOf"]["blockNumber"] is None
    opened_at = client.put(f"{path}/tracking", json={"trackingStatus": "enabled"}).json()["windows"][0]["from"]
    answer = client.get(f"{path}/coverage").json()
    assert gaps(answer) == [(opened_at, None, "NotYetCollected")]
    assert client.get(f"{path}/activities").json()["coverage"]["gaps"] == answer["gaps"]
    # The marts have the window before any of its blocks.
    rows = coverage_rows(world, FRESH_TOKEN_ID, [(0, 410, "BeforeTracking"), (411, None, "NotYetCollected")])
    rows[1]["from_time"] = opened_at.removesuffix("Z")
    table = marts_rows(world)
    publish(world.settings.serving_dir, 2, table | {"coverage": table["coverage"] + rows})
    with world.client() as renewed:
        answer = renewed.get(f"{path}/coverage").json()
        assert gaps(answer) == [(None, opened_at, "BeforeTracking"), (opened_at, None, "NotYetCollected")]
        coverage = renewed.get(f"{path}/activities").json()["coverage"]
        assert gaps(coverage) == [(opened_at, None, "NotYetCollected")]


@pytest.mark.ci
@pytest.mark.parametrize(
    ("seconds", "ranges", "awaited"),
    [
        # Between two blocks; within one second, too short for the pipeline to see; after the newest block.
        (1, [(1, 299, "BeforeTracking"), (300, 410, "TrackingDisabled")], []),
        (0, [(1, 410, "NeverTracked")], []),
        (1, [(1, 299, "BeforeTracking")], [(300, None, "NotYetCollected")]),
    ],
)
def test_time_after_a_window_without_blocks_is_tracking_disabled(
    world: World, seconds: int, ranges: list[Range], awaited: list[Range]
) -> None:
    opened = time_of(300) - timedelta(seconds=2)
    closed = opened + timedelta(seconds=seconds)
    with world.store.write() as session:
        session.add_all(
            TrackingWindow(
                subject_key=world.subject_keys[FRESH_TOKEN_ID],
                opened_at=opened,
                closed_at=closed,
                opened_by=world.principals["admin"].key_id,
            )
            for _ in range(1 if seconds else 3)
        )
    rows = marts_rows(world)
    coverage = coverage_rows(world, FRESH_TOKEN_ID, ranges + awaited)
    if awaited:
        coverage[-1]["from_time"] = opened.replace(tzinfo=None)
    publish(world.settings.serving_dir, 1, rows | {"coverage": rows["coverage"] + coverage})
    path, first, last = f"/v1/tokens/{FRESH_TOKEN_ID}", text(opened), text(closed)
    window = [(first, last, "NotYetCollected")] if awaited else []
    with world.client() as client:
        answer = client.get(f"{path}/coverage").json()
        activities = client.get(f"{path}/activities").json()["coverage"]
        since = client.get(f"{path}/activities?from={stamp(100)}&to={stamp(200)}").json()["coverage"]
        token = client.get(path).json()
        listed = next(one for one in client.get("/v1/tokens").json()["data"] if one["id"] == FRESH_TOKEN_ID)
        early, late = (
            problem(client.get(f"{path}/cap-table?asOf={moment}"), 409, "not-covered")
            for moment in (stamp(200), stamp(400))
        )
    assert (token["trackingStatus"], token["windows"], answer["windows"]) == (
        "disabled",
        *[[{"from": first, "to": last}] if seconds else []] * 2,
    )
    assert (token["pricedIn"], listed["pricedIn"]) == ("USD", "USD")
    since_when = last if awaited else first
    assert gaps(activities) == [*window, (since_when, None, "TrackingDisabled")]
    assert gaps(answer)[-1 - len(window) :] == gaps(activities)
    assert gaps(since) == [(stamp(100), stamp(200), "BeforeTracking")]
    assert (early["before"], early["after"], late["before"], late["after"]) == (None, None, None, None)
    assert [gap["reason"] for gap in early["gaps"]] == ["BeforeTracking"]
    assert gaps(late) == [(since_when, None, "TrackingDisabled")]


def test_gap_ends_at_the_time_of_the_first_block_after_it(client: TestClient[Any]) -> None:
    """A range from the time of block 250, the last of the gap, includes the gap."""
    coverage = client.get(f"{TOKEN}/activities?from={stamp(250)}").json()["coverage"]
    assert gaps(coverage) == [(stamp(250), stamp(251), "TrackingDisabled")]
    assert client.get(f"{TOKEN}/activities?from={stamp(251)}").json()["coverage"]["complete"] is True


def test_coverage_lists_more_history_requests_than_a_page_has(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.subjects.coverage.MAXIMUM_LIMIT", 5)
    with world.store.write() as session:
        token = tokens.get(session, world.tenant_id, FRESH_TOKEN_ID)
        for number in range(1, 13):
            operations.request_history(
                session,
                world.principals["admin"],
                token,
                HistoryRequest(from_=f"block:{number}", to="now", native=None),
            )
    with world.client() as client:
        history = client.get(f"/v1/tokens/{FRESH_TOKEN_ID}/coverage").json()["history"]
    assert [one["from"] for one in history] == [f"block:{number}" for number in range(1, 13)]
