"""Statistics of a ledger: counts, lag, activities and active wallets by interval, complete intervals."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import pytest
from litestar.testing import TestClient

from api.examples import (
    EXAMPLE_LEDGER,
    EXAMPLE_NETWORK,
    EXAMPLE_TOKEN_ID,
    EXAMPLE_UNUSED_LEDGER,
    EXAMPLE_WALLET_ID,
)
from control import subjects, tokens
from control.subjects import Kind
from tests.api.marts import publish
from tests.api.test_coverage import Range, coverage_rows
from tests.api.test_errors import problem
from tests.api.world import (
    BIG_TOKEN_ID,
    FRESH_TOKEN_ID,
    NFT_TOKEN_ID,
    UNKNOWN_TOKEN_ID,
    WIDE_TOKEN_ID,
    ZERO,
    World,
    marts_rows,
    time_of,
)

STATISTICS = f"/v1/networks/ledgers/{EXAMPLE_LEDGER}/statistics"
TRACKED = (EXAMPLE_TOKEN_ID, BIG_TOKEN_ID, WIDE_TOKEN_ID, UNKNOWN_TOKEN_ID, EXAMPLE_WALLET_ID)
HOURS = "from=2026-01-31T23:00:00Z&to=2026-02-01T02:00:00Z&interval=1h"
FROM_THE_FIRST: list[Range] = [(1, 410, None)]
CAUGHT_UP: list[Range] = [(1, 99, "BeforeTracking"), (100, 410, None)]


def stamp(block: int) -> str:
    return f"{time_of(block):%Y-%m-%dT%H:%M:%SZ}"


def counted(rows: Iterable[dict[str, Any]], wallets: dict[int, str]) -> tuple[int, int, int]:
    """Count token activities, wallet activities and active wallets in rows of the marts, using sets."""
    found = list(rows)
    active = {
        address
        for row in found
        if row["activity_type"] != "Adjustment"
        for address in (
            [wallets[row["subject_key"]]] if "wallet_id" in row else [row["from_address"], row["to_address"]]
        )
    }
    in_wallets = sum("wallet_id" in row for row in found)
    return len(found) - in_wallets, in_wallets, len(active - {ZERO, None})


def activities(world: World, start: datetime, end: datetime) -> tuple[int, int, int]:
    rows = marts_rows(world)
    wallets = {row["subject_key"]: row["address"] for row in rows["wallets"]}
    between = (
        row
        for row in (*rows["token_activities"], *rows["wallet_activities"])
        if start.replace(tzinfo=None) <= row["block_time"] < end.replace(tzinfo=None)
    )
    return counted((row for row in between if row["tenant_id"] == world.tenant_id), wallets)


def test_totals(world: World, client: TestClient[Any]) -> None:
    answer = client.get(STATISTICS).json()
    token_count, wallet_count, active = activities(world, time_of(0), time_of(500))
    assert active > 3
    assert answer["totals"] == {
        "tokens": 6,
        "wallets": 1,
        "trackedTokens": 4,
        "trackedWallets": 1,
        "activities": token_count + wallet_count,
        "activeWallets": active,
        "newestBlock": {"number": 400, "time": stamp(400)},
        "headBlock": 410,
        "lagSeconds": 120,
        "lagStatus": "Known",
    }
    assert (answer["ledger"], answer["network"], answer["asOf"]) == (EXAMPLE_LEDGER, "ethereum", {"dataVersion": 1})


def test_the_last_thirty_days(client: TestClient[Any]) -> None:
    answer = client.get(STATISTICS).json()
    dates = [point["date"] for point in answer["series"]]
    assert (answer["interval"], answer["from"], len(dates)) == ("1d", "2026-01-03T00:00:00Z", 30)
    assert (dates[0], dates[-1]) == ("2026-01-03", "2026-02-01")
    assert answer["series"][0] == {
        "date": "2026-01-03",
        "from": "2026-01-03T00:00:00Z",
        "to": "2026-01-04T00:00:00Z",
        "activities": 0,
        "activeWallets": 0,
        "tokenActivities": 0,
        "walletActivities": 0,
        "isComplete": False,
    }
    assert answer["series"][-1]["activities"] == answer["totals"]["activities"]


@pytest.mark.ci
@pytest.mark.parametrize("interval", ["1h", "1d", "1w", "1M"])
@pytest.mark.parametrize(("first", "last"), [(110, 397), (120, 300), (-900, 1000), (121, 122)])
def test_series_add_up(world: World, client: TestClient[Any], interval: str, first: int, last: int) -> None:
    start, end = time_of(first), time_of(last)
    query = f"from={stamp(first)}&to={stamp(last)}&interval={interval}"
    answer = client.get(f"{STATISTICS}?{query}").json()
    token_count, wallet_count, active = activities(world, start, end)
    assert sum(point["tokenActivities"] for point in answer["series"]) == token_count
    assert sum(point["walletActivities"] for point in answer["series"]) == wallet_count
    assert [answer["totals"]["activities"], answer["totals"]["activeWallets"]] == [token_count + wallet_count, active]
    if interval == "1h":
        for point in answer["series"]:
            hour = datetime.fromisoformat(point["date"])
            expected = activities(world, max(start, hour), min(end, hour + timedelta(hours=1)))
            assert (point["tokenActivities"], point["walletActivities"], point["activeWallets"]) == expected
            assert point["activities"] == expected[0] + expected[1]


def test_an_interval_belongs_to_its_start(world: World) -> None:
    rows = marts_rows(world)
    sample = rows["token_activities"][0]
    rows["token_activities"] = [
        sample | {"activity_id": str(number), "block_time": f"2026-02-01 0{hour}"}
        for number, hour in enumerate(("0:59:59.999999", "1:00:00", "1:00:00.000001"))
    ]
    rows["wallet_activities"] = []
    publish(world.settings.serving_dir, 1, rows)
    with world.client() as client:
        series = client.get(f"{STATISTICS}?{HOURS}").json()["series"]
    assert [point["activities"] for point in series] == [0, 1, 2]


def test_adjustments_make_no_wallet_active(world: World) -> None:
    rows = marts_rows(world)
    for table in ("token_activities", "wallet_activities"):
        rows[table] = [row | {"activity_type": "Adjustment"} for row in rows[table]]
    publish(world.settings.serving_dir, 1, rows)
    with world.client() as client:
        totals = client.get(STATISTICS).json()["totals"]
    assert (totals["activities"], totals["activeWallets"]) == (5 + 3 * 8 + 7, 0)


def completeness(world: World, coverage: dict[str, list[Range]], query: str = HOURS) -> list[bool]:
    rows = marts_rows(world)
    rows["coverage"] = [
        row for subject_id, ranges in coverage.items() for row in coverage_rows(world, subject_id, ranges)
    ]
    publish(world.settings.serving_dir, 1, rows)
    with world.client() as client:
        return [point["isComplete"] for point in client.get(f"{STATISTICS}?{query}").json()["series"]]


def test_complete_intervals(world: World) -> None:
    # The node's newest block, 410, is at 01:02: the hour from 00:00 is over, the hour from 01:00 is not.
    everything = dict.fromkeys(TRACKED, CAUGHT_UP)
    assert completeness(world, everything) == [False, True, False]
    early = dict.fromkeys(TRACKED, FROM_THE_FIRST)
    assert completeness(world, early) == [True, True, False]
    # An hour cut by the range is incomplete.
    assert completeness(world, early, "from=2026-01-31T23:00:01Z&to=2026-02-01T00:59:00Z&interval=1h") == [False, False]


@pytest.mark.ci
@pytest.mark.parametrize(
    ("subject_id", "ranges", "expected"),
    [
        # A gap of any tracked subject.
        (WIDE_TOKEN_ID, [(1, 150, None), (151, 151, "ProviderFailed"), (152, 410, None)], False),
        (EXAMPLE_WALLET_ID, [(1, 150, None), (151, 160, "TrackingDisabled"), (161, 410, None)], False),
        (BIG_TOKEN_ID, [(1, 380, None), (381, 410, "NotYetCollected")], False),
        (BIG_TOKEN_ID, [(1, 105, "BeforeTracking"), (106, 410, None)], False),
        (BIG_TOKEN_ID, [], False),
        (BIG_TOKEN_ID, [(1, 405, None), (406, 410, "NotYetCollected")], True),
        # Gaps without a known time begin at the end of the preceding blocks.
        (BIG_TOKEN_ID, [(1, 405, None), (406, 407, "ProviderFailed"), (408, 410, "NotYetCollected")], True),
        # A subject that is not tracked now counts only where it has data to collect.
        (NFT_TOKEN_ID, [(1, 410, "NeverTracked")], True),
        (NFT_TOKEN_ID, [], True),
        (NFT_TOKEN_ID, [(1, 120, None), (121, 410, "TrackingDisabled")], True),
        (NFT_TOKEN_ID, [(1, 120, "NotYetCollected"), (121, 410, "NeverTracked")], False),
        (NFT_TOKEN_ID, [(1, 120, None), (121, 121, "ProviderFailed"), (122, 410, None)], False),
    ],
)
def test_incomplete_intervals(world: World, subject_id: str, ranges: list[Range], expected: bool) -> None:
    coverage = dict.fromkeys(TRACKED, FROM_THE_FIRST) | {subject_id: ranges}
    assert completeness(world, coverage)[1] is expected


def test_tracked_subject_without_marts_makes_intervals_incomplete(world: World) -> None:
    coverage = dict.fromkeys(TRACKED, FROM_THE_FIRST)
    assert completeness(world, coverage)[1] is True
    with world.store.write() as session:
        token = tokens.get(session, world.tenant_id, FRESH_TOKEN_ID)
        subjects.set_tracking(session, world.principals["admin"], token, True)
    assert completeness(world, coverage)[1] is False


def test_removed_and_disabled_subjects(world: World, client: TestClient[Any]) -> None:
    before = client.get(STATISTICS).json()["totals"]
    with world.store.write() as session:
        admin = world.principals["admin"]
        big = tokens.get(session, world.tenant_id, BIG_TOKEN_ID)
        subjects.remove(session, admin, big)
        wallet = subjects.get(session, world.tenant_id, Kind.WALLET, EXAMPLE_WALLET_ID)
        subjects.set_tracking(session, admin, wallet, False)
    after = client.get(STATISTICS).json()["totals"]
    assert (after["tokens"], after["trackedTokens"]) == (before["tokens"] - 1, before["trackedTokens"] - 1)
    assert (after["wallets"], after["trackedWallets"]) == (1, 0)
    assert after["activities"] == before["activities"] - 8


@pytest.mark.ci
@pytest.mark.parametrize(
    ("change", "lag"),
    [
        ({"head_time": None}, (None, "HeadUnknown")),
        ({"head_time": "2026-02-01 00:59:00", "head_number": 395}, (0, "Known")),
        ({"head_time": "2026-02-01 01:00:59.9", "head_number": 405}, (59, "Known")),
        ({"network": "sepolia"}, (None, "HeadUnknown")),
    ],
)
def test_lag(world: World, change: dict[str, Any], lag: tuple[int | None, str]) -> None:
    rows = marts_rows(world)
    (ethereum,) = (row for row in rows["networks"] if row["network"] == EXAMPLE_NETWORK)
    ethereum |= change
    publish(world.settings.serving_dir, 1, rows)
    with world.client() as client:
        totals = client.get(STATISTICS).json()["totals"]
    assert (totals["lagSeconds"], totals["lagStatus"]) == lag


def test_before_anything_is_collected(world: World) -> None:
    publish(world.settings.serving_dir, 1, {})
    with world.client() as client:
        answer = client.get(STATISTICS).json()
        assert (answer["series"], answer["from"], answer["to"]) == ([], None, None)
        totals = answer["totals"]
        assert (totals["tokens"], totals["trackedTokens"], totals["activities"]) == (6, 4, 0)
        assert (totals["newestBlock"], totals["headBlock"]) == (None, None)
        assert (totals["lagSeconds"], totals["lagStatus"]) == (None, "NotYetCollected")
        totals = client.get(f"/v1/networks/ledgers/{EXAMPLE_UNUSED_LEDGER}/statistics").json()["totals"]
        assert (totals["tokens"], totals["lagStatus"]) == (0, "NothingTracked")


def test_another_tenant_sees_its_own(world: World) -> None:
    with world.client("foreign") as client:
        totals = client.get(STATISTICS).json()["totals"]
    assert (totals["tokens"], totals["wallets"], totals["activities"], totals["activeWallets"]) == (1, 1, 2, 3)


def test_invalid_requests_are_refused(client: TestClient[Any]) -> None:
    found = problem(client.get(f"{STATISTICS}?from=2000-01-01&interval=1h"), 422, "invalid-parameter")
    assert found["errors"][0]["code"] == "too-many-intervals"
    problem(client.get(f"{STATISTICS}?interval=1y"), 422, "invalid-parameter")
    problem(client.get(f"{STATISTICS}?from=2026-02-02&to=2026-02-01"), 422, "invalid-parameter")
    problem(client.get("/v1/networks/ledgers/nowhere/statistics"), 404, "ledger-not-found")
