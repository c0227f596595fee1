"""Dry runs of history requests: estimates against costs computed from the observed pace per million blocks."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from math import ceil
from typing import Any

import pytest
from litestar.testing import TestClient

from api.examples import EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from control import operations
from control.operations import Report
from tests.api.marts import publish
from tests.api.test_errors import problem
from tests.api.world import BIG_TOKEN_ID, FILE_ON_RECORD, FRESH_TOKEN_ID, NFT_TOKEN_ID, World, marts_rows, time_of

FRESH = f"/v1/tokens/{FRESH_TOKEN_ID}"
TOKEN = f"/v1/tokens/{EXAMPLE_TOKEN_ID}"
WALLET = f"/v1/wallets/{EXAMPLE_WALLET_ID}"

# Requests, bytes and milliseconds per million blocks.
PACES = {
    "token": (70_000, 5_000_000_001, 40_000_000),
    "wallet": (150_000, 2_000_000, 90_000_000),
    "native": (2_000_000, 100_000_000_000, 300_000_000),
    "files": (3_000, 1, 7_000_000),
}
HEAD = 410


def paces(*works: str) -> list[dict[str, Any]]:
    names = ("requests_per_million", "answer_bytes_per_million", "milliseconds_per_million")
    return [{"network": "ethereum", "work": work, **dict(zip(names, PACES[work], strict=True))} for work in works] + [
        {"network": "sepolia", "work": "token", **dict.fromkeys(names, 1)}
    ]


@pytest.fixture
def observed(world: World, client: TestClient[Any]) -> TestClient[Any]:
    """A client of a version with the paces of all kinds of work."""
    publish(world.settings.serving_dir, 2, marts_rows(world) | {"collection_paces": paces(*PACES)})
    return client


def estimate(client: TestClient[Any], subject: str, **body: Any) -> dict[str, Any]:
    answer = client.post(f"{subject}/history-requests", json={**body, "dryRun": True})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert found.pop("maxRequestsPerDay") == 5000
    return found


def cost(blocks: int, *works: str) -> dict[str, int]:
    """Return the cost of a number of blocks; floating point is exact enough here."""
    sums = [sum(blocks * PACES[work][place] / 10**6 for work in works) for place in range(3)]
    return {"requests": ceil(sums[0]), "bytes": ceil(sums[1]), "seconds": ceil(sums[2] / 1000)}


@pytest.mark.parametrize(
    ("start", "end", "first", "last"),
    [
        ("block:1", "block:400", 1, 400),
        ("block:0", "block:3", 1, 3),
        ("block:101", "block:9999", 101, HEAD),
        ("block:101", "now", 101, HEAD),
        (time_of(100).isoformat(), time_of(200).isoformat(), 100, 199),
        (time_of(395).isoformat(), "2100-01-01", 395, HEAD),
        ("0001-01-01", "now", 1, HEAD),
    ],
)
def test_estimate_is_blocks_times_observed_pace(
    observed: TestClient[Any], start: str, end: str, first: int, last: int
) -> None:
    blocks = last - first + 1
    assert estimate(observed, FRESH, **{"from": start, "to": end}) == {
        "status": "Estimated",
        "detail": None,
        "fromBlock": first,
        "toBlock": last,
        "blocks": blocks,
        "native": None,
        **cost(blocks, "token"),
        "secondReadings": second_readings(blocks, "token"),
        "files": None,
    }


def second_readings(blocks: int, work: str, mode: str = "sample") -> dict[str, Any]:
    """Return the requests of second readings in each mode; a sample has range ends and stretches in between."""
    askings = {"token": 1, "wallet": 2}[work]
    once = cost(blocks, work)["requests"]
    full = len(range(0, blocks, 2_000)) * 5 * askings
    sample = len(range(0, blocks, 10_000)) * 2 * askings
    stretches = len(range(0, blocks, 5_000)) * 3 * askings
    full = max(full, once)
    return {"mode": mode, "full": full, "sample": min(sample + max(stretches, ceil(once / 50)), full), "off": 0}


def test_every_mode_of_second_readings_is_estimated(world: World, observed: TestClient[Any]) -> None:
    heads = marts_rows(world)["networks"]
    for row in heads:
        row["head_number"] = 1_000_000
    publish(world.settings.serving_dir, 3, marts_rows(world) | {"networks": heads, "collection_paces": paces(*PACES)})
    for subject, work in ((FRESH, "token"), (WALLET, "wallet")):
        found = estimate(observed, subject, **{"from": "block:500", "to": "block:900499", "native": None})
        assert found["blocks"] == 900_000
        assert found["secondReadings"] == second_readings(900_000, work)
        assert 0 == found["secondReadings"]["off"] < found["secondReadings"]["sample"] < found["secondReadings"]["full"]


def test_range_between_instants_counts_blocks_that_start_in_it(observed: TestClient[Any]) -> None:
    """Blocks are 12 seconds apart."""
    found = estimate(observed, FRESH, **{"from": "2026-02-01T00:00:01Z", "to": "2026-02-01T00:00:13Z"})
    assert (found["fromBlock"], found["toBlock"], found["blocks"]) == (101, 101, 1)
    empty = estimate(observed, FRESH, **{"from": "2099-01-01", "to": "now"})
    assert (empty["fromBlock"], empty["toBlock"]) == (None, None)
    assert [empty[name] for name in ("blocks", "requests", "bytes", "seconds")] == [0, 0, 0, 0]


def test_collected_blocks_cost_nothing(observed: TestClient[Any]) -> None:
    collected = observed.get(f"{TOKEN}/coverage").json()["collected"]
    own = {number for part in collected for number in range(part["fromBlock"], part["toBlock"] + 1)}
    missing = len(set(range(50, 261)) - own)
    assert 0 < missing < 211
    found = estimate(observed, TOKEN, **{"from": "block:50", "to": "block:260"})
    assert found["blocks"] == missing
    assert found["requests"] == cost(missing, "token")["requests"]


def test_wallet_estimate_includes_native_value_by_mode(observed: TestClient[Any]) -> None:
    for native, works in ((None, ("wallet", "native")), ("full", ("wallet", "native")), ("balance-only", ("wallet",))):
        found = estimate(observed, WALLET, **{"from": "block:1", "to": "block:90", "native": native})
        assert found["native"] == (native or "full")
        assert {name: found[name] for name in ("requests", "bytes", "seconds")} == cost(found["blocks"], *works)


@dataclass
class File:
    """A row of the mart `data_files`, and the blocks that a test expects of it."""

    data_set: str
    name: str
    byte_count: int
    first: int | None = None
    last: int | None = None
    day: date | None = None
    status: str = "Listed"
    network: str = "ethereum"

    def row(self) -> dict[str, Any]:
        return {
            "network": self.network,
            "data_set": self.data_set,
            "file": f"/nowhere/{self.name}",
            "byte_count": self.byte_count,
            "day": self.day,
            "from_block": self.first,
            "to_block": self.last,
            "status": self.status,
            "listed_at": "2026-03-01 00:00:00",
        }

    def blocks(self) -> set[int]:
        """Look each block up: that of a day by its time, unless the file was read."""
        if self.first is not None and self.last is not None:
            return set(range(self.first, self.last + 1))
        return {block for block in range(1, HEAD + 1) if time_of(block).date() == self.day}


def publish_files(world: World, files: Sequence[File], works: Sequence[str] = tuple(PACES), **more: Any) -> None:
    rows = {"collection_paces": paces(*works), "data_files": [file.row() for file in files], **more}
    publish(world.settings.serving_dir, 3, marts_rows(world) | rows)


def files_estimate(files: Sequence[File], missing: set[int], sets: Sequence[str]) -> tuple[dict[str, Any], set[int]]:
    """Estimate block by block; return also the blocks that no file has."""
    used, rest = [], missing
    for name in sets:
        found = [file for file in files if file.data_set == name and file.blocks() & rest]
        used += found
        rest = rest.difference(*(file.blocks() for file in found))
    found_cost = cost(len(missing - rest), "files")
    return {
        "dataSets": [name for name in sets if any(file.data_set == name for file in used)],
        "files": len(used),
        "bytes": sum(file.byte_count for file in used),
        "days": len({file.day for file in used if file.day}) or None,
        "blocks": len(missing - rest),
        "requests": found_cost["requests"],
        "seconds": found_cost["seconds"],
    }, rest


# The second file of 100 to 149 is of another table. 130 to 160 overlaps with it, the last file with the set before.
FILES = [
    File("blocks", "logs/100", 10**15, 100, 149),
    File("blocks", "blocks/100", 7, 100, 149),
    File("blocks", "logs/130", 11, 130, 160),
    File("blocks", "logs/30", 13, 30, 40, status="Read"),
    File("blocks", "logs/200", 17, 200, 400, status="Refused"),
    File("blocks", "logs/50", 19, 50, 60, network="sepolia"),
    File("days", "read", 23, 120, 125, day=date(2026, 1, 5), status="Read"),
    File("days", "read too", 29, 120, 125, day=date(2026, 1, 5), status="Read"),
    File("removed", "logs/1", 31, 1, 400),
]


@pytest.mark.parametrize(("first", "last"), [(1, 400), (35, 45), (110, 140), (120, 125), (121, 121), (145, 170)])
def test_files_are_estimated_apart_from_blocks_without_files(
    world: World, observed: TestClient[Any], first: int, last: int
) -> None:
    publish_files(world, FILES)
    missing = set(range(first, last + 1))
    found = estimate(observed, FRESH, **{"from": f"block:{first}", "to": f"block:{last}"})
    own = [file for file in FILES if file.status != "Refused" and file.network == "ethereum"]
    files, rest = files_estimate(own, missing, ("days", "blocks"))
    assert found["files"] == files
    assert found["status"] == "Estimated"
    assert found["blocks"] == len(missing)
    assert {name: found[name] for name in ("requests", "bytes", "seconds")} == cost(len(rest), "token")
    if rest:
        assert found["secondReadings"] == second_readings(len(rest), "token")
    else:
        assert found["secondReadings"] | {"mode": None} == {"mode": None, "full": 0, "sample": 0, "off": 0}


@pytest.mark.parametrize(("days", "blocks"), [((-2, -1, 0, 1), 410), ((-1,), 99), ((0,), 311)])
def test_blocks_of_unread_days_are_estimated_by_time(
    world: World, observed: TestClient[Any], days: Sequence[int], blocks: int
) -> None:
    """The day of the head ends after it; days before the first block and after the head have no blocks."""
    midnight = time_of(100).date()
    files = [File("days", str(day), 5 + day, day=midnight + timedelta(days=day)) for day in days]
    publish_files(world, files)
    found = estimate(observed, FRESH, **{"from": "block:1"})
    expected, _ = files_estimate(files, set(range(1, HEAD + 1)), ("days",))
    assert found["files"] == expected
    assert found["files"]["blocks"] == blocks


def test_mart_has_the_files_on_record(world: World) -> None:
    (row,) = marts_rows(world)["data_files"]
    assert row.items() >= {"network": "ethereum", **FILE_ON_RECORD}.items()


def test_files_of_collected_blocks_do_not_count(world: World, observed: TestClient[Any]) -> None:
    collected = observed.get(f"{TOKEN}/coverage").json()["collected"]
    own = {number for part in collected for number in range(part["fromBlock"], part["toBlock"] + 1)}
    publish_files(world, FILES)
    found = estimate(observed, TOKEN, **{"from": "block:110", "to": "block:140"})
    assert set(range(110, 141)) <= own
    assert (found["blocks"], found["files"]) == (0, None)


def test_native_value_of_wallets_is_not_in_files(world: World, observed: TestClient[Any]) -> None:
    publish_files(world, FILES)
    found = estimate(observed, WALLET, **{"from": "block:31", "to": "block:45", "native": "full"})
    assert (found["blocks"], found["files"]["blocks"]) == (15, 10)
    by_transfers, by_native = cost(5, "wallet"), cost(15, "native")
    assert found["requests"] == by_transfers["requests"] + by_native["requests"]
    assert found["bytes"] == by_transfers["bytes"] + by_native["bytes"]


def test_files_that_were_never_checked_have_20_requests(world: World, observed: TestClient[Any]) -> None:
    publish_files(world, FILES, ["token"])
    found = estimate(observed, FRESH, **{"from": "block:120", "to": "block:125"})
    assert (found["status"], found["detail"], found["requests"]) == ("Estimated", None, 0)
    assert (found["files"]["requests"], found["files"]["seconds"]) == (20, None)


def test_files_are_estimated_before_the_node_was_observed(world: World, observed: TestClient[Any]) -> None:
    publish_files(world, FILES, ["files"])
    found = estimate(observed, FRESH, **{"from": "block:155", "to": "block:165"})
    assert found["files"]["blocks"] == 6
    assert (found["status"], found["requests"], found["files"]["requests"]) == ("NothingObserved", None, 1)


def test_unread_days_without_known_time_between_blocks_do_not_count(world: World, observed: TestClient[Any]) -> None:
    publish_files(world, [File("days", "unread", 5, day=time_of(100).date()), FILES[0]], blocks=[])
    found = estimate(observed, FRESH, **{"from": "block:1", "to": "block:400"})
    assert (found["files"]["dataSets"], found["files"]["blocks"]) == (["blocks"], 50)


def test_unknown_creation_block_gives_an_upper_bound(world: World, observed: TestClient[Any]) -> None:
    unknown = estimate(observed, FRESH, **{"from": "creation"})
    assert (unknown["status"], unknown["fromBlock"], unknown["blocks"]) == ("AtMost", 1, HEAD)
    assert "creation" in unknown["detail"]
    assert unknown["requests"] == cost(HEAD, "token")["requests"]
    made = observed.post(f"{FRESH}/history-requests", json={"from": "creation"}).json()
    with world.store.write() as session:
        (key,) = [row.operation_key for row in operations.unfinished(session, 0) if row.id == made["id"]]
        operations.report(session, 0, key, Report(from_block=300))
    known = estimate(observed, FRESH, **{"from": "creation"})
    assert (known["status"], known["detail"], known["fromBlock"], known["blocks"]) == ("Estimated", None, 300, 111)
    wallet = estimate(observed, WALLET, **{"from": "creation"})
    assert (wallet["status"], wallet["fromBlock"]) == ("Estimated", 1)


def test_estimate_without_observed_pace_has_no_figures(world: World, client: TestClient[Any]) -> None:
    publish(world.settings.serving_dir, 2, marts_rows(world) | {"collection_paces": paces("wallet")})
    token = estimate(client, FRESH, **{"from": "block:1", "to": "block:90"})
    assert (token["status"], token["blocks"]) == ("NothingObserved", 90)
    assert (token["requests"], token["bytes"], token["seconds"]) == (None, None, None)
    assert "ethereum" in token["detail"]
    full = estimate(client, WALLET, **{"from": "block:1", "to": "block:90"})
    assert (full["status"], full["requests"]) == ("NothingObserved", None)
    balances = estimate(client, WALLET, **{"from": "block:1", "to": "block:90", "native": "balance-only"})
    assert balances["status"] == "Estimated"


@pytest.mark.parametrize(("lost", "body"), [("networks", {"from": "block:1"}), ("blocks", {"from": "2026-01-01"})])
def test_unknown_range_has_no_figures(world: World, client: TestClient[Any], lost: str, body: dict[str, str]) -> None:
    publish(world.settings.serving_dir, 2, marts_rows(world) | {"collection_paces": paces(*PACES), lost: []})
    found = estimate(client, FRESH, **body)
    assert found.pop("status") == "RangeUnknown"
    assert "not known yet" in found.pop("detail")
    assert set(found.values()) == {None}


def test_dry_run_stores_nothing(observed: TestClient[Any], world: World) -> None:
    key = {"Idempotency-Key": "dry"}
    before = [observed.get(path).json() for path in (f"{FRESH}/history-requests", "/v1/audit-events")]
    for _ in range(2):
        dry = observed.post(f"{FRESH}/history-requests", json={"from": "creation", "dryRun": True}, headers=key)
        assert dry.status_code == 200
        assert "idempotency-replayed" not in dry.headers
        assert "location" not in dry.headers
    assert [observed.get(path).json() for path in (f"{FRESH}/history-requests", "/v1/audit-events")] == before
    made = observed.post(f"{FRESH}/history-requests", json={"from": "creation"}, headers=key)
    assert made.status_code == 202
    assert "idempotency-replayed" not in made.headers
    again = observed.post(f"{FRESH}/history-requests", json={"from": "creation", "dryRun": False}, headers=key)
    problem(again, 422, "idempotency-key-reused")


def test_dry_run_refuses_invalid_requests_like_the_real_one(observed: TestClient[Any], world: World) -> None:
    def ask(subject: str, caller: str = "admin", **body: Any) -> Any:
        return observed.post(
            f"{subject}/history-requests", json={**body, "dryRun": True}, headers=world.headers(caller)
        )

    problem(ask(FRESH, **{"from": "now"}), 422, "invalid-body")
    problem(ask(FRESH, **{"from": "block:9", "to": "block:8"}), 422, "invalid-body")
    problem(ask(FRESH, **{"from": "creation", "native": "full"}), 422, "invalid-body")
    problem(ask(FRESH, **{"from": "last week"}), 400, "malformed-field")
    problem(ask(f"/v1/tokens/{NFT_TOKEN_ID}", **{"from": "creation"}), 409, "not-fungible")
    problem(ask(FRESH, "operator", **{"from": "creation"}), 403, "role-too-low")
    problem(observed.post(f"{FRESH}/history-requests", json={"from": "creation", "dryRun": "yes"}), 422, "invalid-body")


@pytest.mark.parametrize("subject", [FRESH, f"/v1/tokens/{BIG_TOKEN_ID}", WALLET])
def test_dry_run_of_tracking_with_history_changes_nothing(observed: TestClient[Any], subject: str) -> None:
    def state() -> list[Any]:
        paths = (subject, f"{subject}/history-requests", "/v1/audit-events")
        return [observed.get(path).json() for path in paths]

    before = state()
    body = {"trackingStatus": "enabled", "history": "block:1", "dryRun": True}
    answer = observed.put(f"{subject}/tracking", json=body)
    assert answer.status_code == 200
    assert state() == before
    found = answer.json()
    assert (found["trackingStatus"], found["windows"]) == (before[0]["trackingStatus"], before[0]["windows"])
    assert found["historyRequest"] is None
    # Up to the start of the open window, which is block 251 or now.
    last = 250 if before[0]["windows"] else HEAD
    asked = observed.post(
        f"{subject}/history-requests", json={"from": "block:1", "to": f"block:{last}", "dryRun": True}
    )
    assert found["historyEstimate"] == asked.json()
    plain = observed.put(f"{subject}/tracking", json={"trackingStatus": "enabled"}).json()
    assert (plain["historyRequest"], plain["historyEstimate"]) == (None, None)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"trackingStatus": "enabled", "dryRun": True}, "/dryRun"),
        ({"trackingStatus": "disabled", "history": "creation", "dryRun": True}, "/history"),
        ({"trackingStatus": "enabled", "history": "now", "dryRun": True}, "/history"),
    ],
)
def test_invalid_dry_run_of_tracking_is_refused_like_the_real_one(
    observed: TestClient[Any], body: dict[str, Any], pointer: str
) -> None:
    found = problem(observed.put(f"{FRESH}/tracking", json=body), 422, "invalid-body")
    assert [error["pointer"] for error in found["errors"]] == [pointer]
