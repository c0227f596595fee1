"""Activities, cap tables and balances: filters, sort order, moments, coverage and exact numbers."""

import json
import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from litestar.testing import TestClient

from api.engine.rows import as_naive, as_utc
from api.examples import EXAMPLE_LEDGER, EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from tests.api.marts import publish
from tests.api.pricing import NAV
from tests.api.test_errors import problem
from tests.api.world import (
    BIG_TOKEN_ID,
    GOLDEN,
    GONE,
    HOLDERS,
    NFT_TOKEN_ID,
    UNKNOWN_TOKEN_ID,
    WIDE_TOKEN_ID,
    ZERO,
    World,
    hash_of,
    marts_rows,
    percentage_of,
    supply_status_at,
    text_of,
    time_of,
    value_of,
)

TOKEN, WALLET = f"/v1/tokens/{EXAMPLE_TOKEN_ID}", f"/v1/wallets/{EXAMPLE_WALLET_ID}"
MIDDLE_GAP = {
    "from": "2026-02-01T00:20:00Z",
    "to": "2026-02-01T00:30:12Z",
    "fromBlock": 201,
    "toBlock": 250,
    "reason": "TrackingDisabled",
}


@pytest.fixture(scope="module")
def client(reader: TestClient[Any]) -> TestClient[Any]:
    """The shared client: no test of this file writes with it."""
    return reader


def stamp(block: int) -> str:
    return f"{time_of(block):%Y-%m-%dT%H:%M:%SZ}"


def rows_of(client: TestClient[Any], url: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(url).json()["data"]
    return found


def test_activities_are_newest_first(client: TestClient[Any]) -> None:
    answer = client.get(f"{TOKEN}/activities").json()
    assert [row["blockNumber"] for row in answer["data"]] == [395, 310, 300, 150, 120]
    oldest = answer["data"][-1]
    assert oldest == {
        "id": oldest["id"],
        "type": "Transfer",
        "date": stamp(120),
        "status": "Finalized",
        "fromWallet": HOLDERS["h1"],
        "toWallet": HOLDERS["h2"],
        "amount": "30",
        "amountRaw": "30",
        "value": None,
        "valueStatus": "NoPair",
        "price": None,
        "priceStatus": "NoPair",
        "transactionHash": f"0x{1:064x}",
        "logIndex": 1,
        "located": None,
        "blockNumber": 120,
        "fromName": None,
        "toName": None,
    }
    adjustment = answer["data"][0]
    assert (adjustment["fromWallet"], adjustment["transactionHash"], adjustment["logIndex"]) == (None, None, None)
    assert adjustment["located"] is False
    assert answer["asOf"] == {
        "ledger": EXAMPLE_LEDGER,
        "blockNumber": 400,
        "blockHash": hash_of(400),
        "blockTime": stamp(400),
        "finality": "Confirmed",
        "at": stamp(400),
        "dataVersion": 1,
    }
    assert answer["coverage"] == {"complete": False, "from": stamp(100), "to": stamp(400), "gaps": [MIDDLE_GAP]}


@pytest.mark.parametrize(
    ("query", "blocks"),
    [
        ("sort=date", [120, 150, 300, 310, 395]),
        ("type=Mint", [150]),
        ("status=Confirmed", [395]),
        (f"wallet={HOLDERS['h4']}", [300]),
        (f"wallet={HOLDERS['h2'].upper().replace('X', 'x')}", [395, 310, 120]),
        ("minAmount=10", [300, 150, 120]),
        ("minAmount=10.000000000000000001", [300, 120]),
        (f"from={stamp(150)}&to={stamp(300)}", [150]),
        ("from=2026-02-01&to=2026-02-02", [395, 310, 300, 150, 120]),
        ("from=2026-02-02", []),
        (f"from={time_of(150):%Y-%m-%dT%H:%M:%S}%2B00:00&type=Transfer", [300]),
        (f"from={time_of(150):%Y-%m-%dT%H:%M:%S}&type=Transfer", [300]),
    ],
)
def test_activities_are_filtered(client: TestClient[Any], query: str, blocks: list[int]) -> None:
    assert [row["blockNumber"] for row in rows_of(client, f"{TOKEN}/activities?{query}")] == blocks


@pytest.mark.parametrize(
    ("query", "gaps"),
    [
        (f"from={stamp(260)}", []),
        (f"from={stamp(100)}&to={stamp(150)}", []),
        (f"from={stamp(220)}&to={stamp(300)}", [(stamp(220), stamp(251), "TrackingDisabled")]),
        (f"from={stamp(50)}&to={stamp(150)}", [(stamp(50), stamp(100), "BeforeTracking")]),
        (f"from={stamp(300)}&to={stamp(405)}", [(stamp(401), stamp(405), "NotYetCollected")]),
        (f"from={stamp(300)}&to={stamp(900)}", [(stamp(401), stamp(900), "NotYetCollected")]),
        (f"from={stamp(800)}&to={stamp(900)}", [(stamp(800), stamp(900), "NotYetCollected")]),
        (f"from={stamp(10)}&to={stamp(20)}", [(stamp(10), stamp(20), "BeforeTracking")]),
    ],
)
def test_coverage_is_that_of_the_requested_range(
    client: TestClient[Any], query: str, gaps: list[tuple[str, str, str]]
) -> None:
    coverage = client.get(f"{TOKEN}/activities?{query}").json()["coverage"]
    assert [(gap["from"], gap["to"], gap["reason"]) for gap in coverage["gaps"]] == gaps
    assert coverage["complete"] == (not gaps)
    assert coverage["from"] == query.split("&")[0].removeprefix("from=")


@pytest.mark.parametrize(
    ("query", "amounts"),
    [
        ("", [9, 2**256 - 1, 60, 21_000, 5, 30, 5 * 10**18]),
        ("type=Fee", [21_000]),
        ("direction=In", [9, 5, 5 * 10**18]),
        ("token=native", [21_000, 5 * 10**18]),
        (f"token={EXAMPLE_TOKEN_ID}", [2**256 - 1, 60, 30]),
        ("token=0xAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA&sort=date", [30, 60, 2**256 - 1]),
        (f"counterparty={HOLDERS['h4']}&direction=Out", [60]),
    ],
)
def test_wallet_activities_are_filtered(client: TestClient[Any], query: str, amounts: list[int]) -> None:
    assert [int(row["amountRaw"]) for row in rows_of(client, f"{WALLET}/activities?{query}")] == amounts


def test_a_wallet_activity_names_its_asset(client: TestClient[Any]) -> None:
    newest, own, *_ = rows_of(client, f"{WALLET}/activities")
    assert newest["token"] == {
        "symbol": None,
        "ledgerId": "0xDDdDddDdDdddDDddDDddDDDDdDdDDdDDdDDDDDDd",
        "tokenId": None,
    }
    assert (newest["amount"], newest["valueStatus"]) == ("9", "UnknownDecimals")
    assert (own["token"]["tokenId"], own["direction"], own["valueStatus"]) == (EXAMPLE_TOKEN_ID, None, "NoPair")


@pytest.mark.parametrize(("token_id", "decimals"), [(BIG_TOKEN_ID, 18), (WIDE_TOKEN_ID, 77), (UNKNOWN_TOKEN_ID, None)])
def test_golden_amounts_are_exact(client: TestClient[Any], token_id: str, decimals: int | None) -> None:
    path = f"/v1/tokens/{token_id}"
    activities = rows_of(client, f"{path}/activities?sort=date")
    assert [row["amountRaw"] for row in activities] == [str(raw) for raw in GOLDEN]
    assert [row["amount"] for row in activities] == [text_of(raw, decimals) or str(raw) for raw in GOLDEN]
    status = {BIG_TOKEN_ID: "Priced", WIDE_TOKEN_ID: "NoPair", UNKNOWN_TOKEN_ID: "UnknownDecimals"}[token_id]
    assert {row["valueStatus"] for row in activities} == {status}
    if status == "Priced":
        assert [row["value"] for row in activities] == [value_of(raw, decimals, NAV) for raw in GOLDEN]
    table = client.get(f"{path}/cap-table").json()
    assert [row["quantityRaw"] for row in table["data"]] == [str(raw) for raw in reversed(GOLDEN[1:])]
    assert [row["percentage"] for row in table["data"]] == [
        percentage_of(raw, 2**256 - 1) for raw in reversed(GOLDEN[1:])
    ]
    assert table["totalSupplyRaw"] == str(2**256 - 1)
    assert table["totalSupply"] == text_of(2**256 - 1, decimals or 0)
    assert table["unattributed"]["quantityRaw"] == str(2**256 - 1 - sum(GOLDEN))


@pytest.mark.parametrize("sort", ["date", "-date"])
def test_minimum_amount_filter_is_exact(client: TestClient[Any], sort: str) -> None:
    for raw in GOLDEN[1:]:
        for minimum, expected in ((raw, True), (raw + 1, False)):
            query = f"minAmount={text_of(minimum, 18)}&sort={sort}"
            amounts = [row["amountRaw"] for row in rows_of(client, f"/v1/tokens/{BIG_TOKEN_ID}/activities?{query}")]
            assert (str(raw) in amounts) is expected


def test_no_number_of_any_answer_is_a_float(client: TestClient[Any]) -> None:
    def refuse(text: str) -> None:
        raise AssertionError(f"a number with a fraction: {text}")

    tokens = (EXAMPLE_TOKEN_ID, BIG_TOKEN_ID, WIDE_TOKEN_ID, UNKNOWN_TOKEN_ID)
    urls = [
        *(f"/v1/tokens/{each}/activities" for each in tokens),
        *(f"/v1/tokens/{each}/cap-table" for each in tokens),
        f"{TOKEN}/cap-table?asOf=block:305",
        *("/v1/tokens", "/v1/wallets", TOKEN, WALLET, f"{WALLET}/activities", f"{WALLET}/balances"),
    ]
    for url in urls:
        answer = client.get(url)
        assert answer.status_code == 200, (url, answer.text)
        json.loads(answer.content, parse_float=refuse)


def holdings(answer: dict[str, Any]) -> dict[str, int]:
    names = {address: name for name, address in HOLDERS.items()}
    return {names[row["wallet"]]: int(row["quantityRaw"]) for row in answer["data"]}


@pytest.mark.parametrize(
    ("moment", "block", "expected", "supply", "finality"),
    [
        ("block:100", 100, {"h1": 100, "h2": 50}, 150, "Finalized"),
        ("block:149", 149, {"h2": 80, "h1": 70}, 150, "Finalized"),
        ("block:200", 200, {"h2": 80, "h1": 70, "h3": 10}, 160, "Finalized"),
        ("block:251", 251, {"h2": 80, "h1": 60, "h3": 20}, 160, "Finalized"),
        ("block:305", 305, {"h2": 80, "h4": 60, "h3": 20}, 160, "Finalized"),
        ("block:399", 399, {"h2": 75, "h4": 60, "h3": 20}, 155, "Confirmed"),
        ("block:400", 400, {"h2": 75, "h4": 60, "h3": 20}, 155, "Confirmed"),
        (stamp(300), 300, {"h2": 80, "h4": 60, "h3": 20}, 160, "Finalized"),
        (stamp(309), 300, {"h2": 80, "h4": 60, "h3": 20}, 160, "Finalized"),
        ("2026-02-01T00:20:00", 200, {"h2": 80, "h1": 70, "h3": 10}, 160, "Finalized"),
        ("2026-02-01T02:00:00+01:00", 400, {"h2": 75, "h4": 60, "h3": 20}, 155, "Confirmed"),
    ],
)
def test_cap_tables_of_the_past(
    client: TestClient[Any], moment: str, block: int, expected: dict[str, int], supply: int, finality: str
) -> None:
    table = client.get(f"{TOKEN}/cap-table", params={"asOf": moment}).json()
    assert (table["asOf"]["blockNumber"], table["asOf"]["finality"]) == (block, finality)
    assert list(holdings(table).items()) == list(expected.items())
    assert table["holderCount"] == len(expected)
    assert (table["totalSupplyRaw"], table["totalSupplyStatus"]) == (str(supply), supply_status_at(block))
    for row in table["data"]:
        assert row["percentage"] == percentage_of(int(row["quantityRaw"]), supply)
        assert row["percentageStatus"] == table["totalSupplyStatus"]
    assert table["unattributed"]["quantityRaw"] == str(supply - sum(expected.values()))


def test_concentration_of_the_past(client: TestClient[Any]) -> None:
    figures = client.get(f"{TOKEN}/cap-table?asOf=block:305").json()["concentration"]
    # Shares of 160: 80, 60, 20. Gini of (20, 60, 80): (2 * (1*20 + 2*60 + 3*80) - 4 * 160) / (3 * 160).
    assert figures == {
        "top10": "100",
        "hhi": text_of(round(Fraction(80**2 + 60**2 + 20**2, 160**2) * 10_000 * 10**12), 12),
        "gini": "0.25",
        "nakamoto": 2,
        "top10Status": "Observed",
        "hhiStatus": "Observed",
        "giniStatus": "Observed",
        "nakamotoStatus": "Observed",
        "status": "Observed",
    }


def test_holdings_are_complete_only_if_the_range_starts_at_block_one(world: World) -> None:
    """The earlier range starts at the first block; after the gap, unseen holdings are possible."""
    rows = marts_rows(world)
    for row in rows["coverage"] + rows["balance_changes"]:
        for name in ("from_block", "range_from_block"):
            if row["subject_key"] == world.subject_keys[EXAMPLE_WALLET_ID] and row.get(name) == 100:
                row[name] = 1
    publish(world.settings.serving_dir, 1, rows)
    with world.client() as client:
        complete = [client.get(f"{WALLET}/balances{moment}").json()["holdingsComplete"] for moment in MOMENTS]
    assert complete == [True, False, False]


MOMENTS = ("?asOf=block:150", "?asOf=block:305", "")


@pytest.mark.parametrize("opened_by", ["Observed", "Creation"])
def test_holders_are_complete_if_supply_was_zero_before_the_range(world: World, opened_by: str) -> None:
    """Supply is zero before the range, observed or derived, so the known holders account for all of it."""

    rows = marts_rows(world)
    opening = next(
        row
        for row in rows["supply_changes"]
        if (row["subject_key"], row["range_from_block"]) == (world.subject_keys[EXAMPLE_TOKEN_ID], 251)
    )
    rows["supply_changes"].append(
        opening | {"block_number": 251, "block_time": as_naive(time_of(251)), "opened_by": opened_by}
    )
    if opened_by == "Observed":
        opening |= {"total_supply_raw": 0, "total_supply": "0"}
    else:
        rows["supply_changes"].remove(opening)
    publish(world.settings.serving_dir, 1, rows)
    with world.client() as client:
        tables = [client.get(f"{TOKEN}/cap-table?asOf=block:{block}").json() for block in (150, 305)]
    # Unattributed supply is zero at both moments, but the earlier range may lack older holders.
    assert [table["unattributed"]["quantityRaw"] for table in tables] == ["0", "0"]
    assert [table["holdersStatus"] for table in tables] == ["HoldersUnknown", "Complete"]
    assert [table["holderCountStatus"] for table in tables] == ["LowerBound", "Counted"]


@pytest.mark.parametrize("number", [2**63, int("9" * 4_000)])
def test_block_numbers_beyond_any_chain_are_refused(client: TestClient[Any], number: int) -> None:
    for url in (f"{TOKEN}/cap-table", f"{WALLET}/balances"):
        found = problem(client.get(url, params={"asOf": f"block:{number}"}), 422, "invalid-parameter")
        assert [(error["parameter"], error["code"]) for error in found["errors"]] == [("asOf", "out-of-range")]
        assert f"the highest possible number is {2**63 - 1}" in found["detail"]
        assert len(found["detail"]) < 200


@pytest.mark.parametrize(
    ("moment", "before", "after"),
    [
        ("block:99", None, 100),
        ("block:201", 200, 251),
        ("block:401", 400, None),
        (stamp(99), None, 100),
        (stamp(225), 200, 251),
        ("2026-02-01T00:20:00.5Z", 200, 251),
        ("2026-02-01", 400, None),
        ("2030-01-01T00:00:00Z", 400, None),
    ],
)
def test_uncovered_moments_are_refused(
    client: TestClient[Any], moment: str, before: int | None, after: int | None
) -> None:
    for url in (f"{TOKEN}/cap-table", f"{WALLET}/balances"):
        found = problem(client.get(url, params={"asOf": moment}), 409, "not-covered")
        assert found["before"] == (None if before is None else stamp(before))
        assert found["after"] == (None if after is None else stamp(after))


@pytest.mark.parametrize("moment", ["", "&asOf=block:305"])
@pytest.mark.parametrize("key", ["rank", "wallet"])
def test_cap_tables_are_sorted(client: TestClient[Any], key: str, moment: str) -> None:
    for sign in ("", "-"):
        whole = rows_of(client, f"{TOKEN}/cap-table?sort={sign}{key}{moment}")
        assert whole == sorted(whole, key=lambda row: row[key], reverse=bool(sign))
        assert sorted(row["rank"] for row in whole) == [1, 2, 3]


def test_balances_now(client: TestClient[Any]) -> None:
    answer = client.get(f"{WALLET}/balances").json()
    assert [(row["token"]["ledgerId"][:6], row["quantity"], row["valueStatus"]) for row in answer["current"]] == [
        ("0xDDdD", "9", "UnknownDecimals"),
        ("native", "5.999999999999979", "NoPair"),
    ]
    assert answer["holdingsComplete"] is False
    assert answer["interval"] == "1d"


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("block:110", {"native": "1", "SMALL": "100"}),
        ("block:120", {"native": "6", "SMALL": "70", GONE: "5"}),
        ("block:260", {"native": "6", "SMALL": "60"}),
        ("block:390", {"native": "5.999999999999979"}),
        (stamp(150), {"native": "6", "SMALL": "70", GONE: "5"}),
    ],
)
def test_balances_of_the_past(client: TestClient[Any], moment: str, expected: dict[str, str]) -> None:
    answer = client.get(f"{WALLET}/balances", params={"asOf": moment}).json()
    found = {row["token"]["ledgerId"]: row for row in answer["current"]}
    small = "0xaAaAaAaaAaAaAaaAaAAAAAAAAaaaAaAaAaaAaaAa"
    assert {("SMALL" if key == small else key): row["quantity"] for key, row in found.items()} == expected
    if small in found:
        assert found[small]["token"] == {"symbol": "SMALL", "ledgerId": small, "tokenId": EXAMPLE_TOKEN_ID}


def series(answer: dict[str, Any]) -> Iterator[tuple[str, list[tuple[str, str | None, bool]]]]:
    for one in answer["history"]:
        points = [(point["date"], point["quantity"], point["isComplete"]) for point in one["points"]]
        yield one["token"]["symbol"], points


def test_history_by_the_hour(client: TestClient[Any]) -> None:
    query = "from=2026-01-31T23:00:00Z&to=2026-02-01T03:00:00Z&interval=1h"
    answer = client.get(f"{WALLET}/balances?{query}").json()
    # The newest covered block, 400, is at 01:00:00: the hour from 00:00 is over, the hour from 01:00 has begun.
    hours = [f"{day}T{hour}:00:00Z" for day, hour in (("2026-01-31", 23), ("2026-02-01", "00"), ("2026-02-01", "01"))]
    assert dict(series(answer))["ETH"] == [
        (hours[0], None, False),
        (hours[1], "5.999999999999979", True),
        (hours[2], "5.999999999999979", False),
    ]
    assert dict(series(answer)).get("SMALL") is None
    points = answer["history"][0]["points"]
    assert [point["quantityStatus"] for point in points] == ["NotCovered", "Known", "Known"]


def test_history_up_to_a_moment(client: TestClient[Any]) -> None:
    answer = client.get(f"{WALLET}/balances", params={"asOf": "block:150"}).json()
    assert dict(series(answer)) == {
        "ETH": [("2026-02-01", "6", False)],
        "SMALL": [("2026-02-01", "70", False)],
        None: [("2026-02-01", "5", False)],
    }


def test_history_is_not_carried_across_a_gap(client: TestClient[Any]) -> None:
    answer = client.get(f"{WALLET}/balances").json()
    assert GONE not in [one["token"]["ledgerId"] for one in answer["history"]]


def reading(world: World, subject_id: str, token: str, holder: str, **values: Any) -> dict[str, Any]:
    """Return a row of balance_changes as the contract declares it; `flags` names the columns that are true."""
    return {
        "tenant_id": world.tenant_id,
        "subject_key": world.subject_keys[subject_id],
        "range_from_block": values["first"],
        "token_address": token,
        "holder_address": holder,
        "block_number": values["block"],
        "block_time": time_of(values["block"]).replace(tzinfo=None),
        "balance_raw": values["raw"],
        "balance": str(values["raw"]),
        **{flag: flag in values["flags"] for flag in ("is_moved", "is_observed", "is_adjusted")},
        "is_checked": "is_observed" in values["flags"] and "is_derived" not in values["flags"],
        "opened_by": "Derived" if values["first"] > 200 else "Creation",
    }


_HISTORY = {
    "h1": [
        (100, 99, 5, "is_observed"),
        (100, 120, 4, "is_moved"),
        (100, 130, 4, "is_moved is_observed"),
        (251, 251, 3, "is_moved"),
        (251, 270, 3, "is_observed"),
        (251, 280, 3, "is_observed"),
    ],
    "h2": [(100, 99, 5, "is_observed"), (100, 140, 7, "is_observed is_adjusted"), (251, 250, 6, "is_observed")],
    "h3": [(100, 120, 1, "is_moved"), (251, 251, 2, "is_moved"), (251, 260, 2, "is_observed is_derived")],
}


Shown = dict[str, tuple[str, int | None] | None]
"""Reconciliation and checked block of each holder."""


def test_reconciliation_of_the_past(world: World) -> None:
    """The rule is the same for a token's holders and a wallet's assets."""
    unchecked: Shown = {"h2": ("Unchecked", 99), "h3": ("Unchecked", None)}
    # A later reading of the rest, until there is an earlier one; another one's rest is not its own.
    late: Shown = {"h1": ("Reconciled", 270), "h2": ("Adjusted", 250), "h3": ("Unchecked", None)}
    expected: dict[int, Shown] = {
        110: {"h1": ("Reconciled", 99), "h2": ("Unchecked", 99), "h3": None},
        125: unchecked | {"h1": ("Unchecked", 99)},
        130: unchecked | {"h1": ("Reconciled", 130)},
        139: unchecked | {"h1": ("Reconciled", 130)},
        140: unchecked | {"h1": ("Reconciled", 130), "h2": ("Adjusted", 140)},
        260: late,
        275: late,
    }
    _check_past(world, expected, "Standard")


@pytest.mark.ci
@pytest.mark.parametrize("behaviour", ["NonConforming", None])
def test_reading_of_non_standard_token_confirms_only_its_own_block(world: World, behaviour: str | None) -> None:
    others: Shown = {"h2": ("Unchecked", 99), "h3": ("Unchecked", None)}
    shown = {129: ("Unchecked", 99), 130: ("Reconciled", 130), 131: ("Unchecked", 130)}
    _check_past(world, {block: others | {"h1": one} for block, one in shown.items()}, behaviour)


def _check_past(world: World, expected: dict[int, Shown], behaviour: str | None) -> None:
    """Compare each holder's reconciliation status at each block with the expected one, for token and wallet."""
    rows = marts_rows(world)
    rows["balance_changes"] = [
        reading(world, subject, *pair(name), first=first, block=at, raw=raw, flags=flags.split())
        for subject, pair in (
            (EXAMPLE_TOKEN_ID, lambda name: ("0xaa", HOLDERS[name])),
            (EXAMPLE_WALLET_ID, lambda name: (HOLDERS[name], HOLDERS["h1"])),
        )
        for name, changes in _HISTORY.items()
        for first, at, raw, flags in changes
    ]
    for row in rows["tokens"]:
        if row["token_id"] == EXAMPLE_TOKEN_ID:
            row["behaviour"] = behaviour
    rows["wallet_behaviours"] = [
        {
            "tenant_id": world.tenant_id,
            "subject_key": world.subject_keys[EXAMPLE_WALLET_ID],
            "token_address": HOLDERS[name],
            "behaviour": behaviour,
        }
        for name in _HISTORY
    ]
    publish(world.settings.serving_dir, 1, rows)
    names = {address: name for name, address in HOLDERS.items()}
    with world.client() as client:
        for block, then in expected.items():
            table = client.get(f"{TOKEN}/cap-table?asOf=block:{block}").json()["data"]
            positions = client.get(f"{WALLET}/balances?asOf=block:{block}").json()["current"]
            for found in ({row["wallet"]: row for row in table}, {row["token"]["ledgerId"]: row for row in positions}):
                shown = {names[key]: (row["reconciliation"], row["checkedBlockNumber"]) for key, row in found.items()}
                assert {name: shown.get(name) for name in _HISTORY} == then, block
                assert {row["openedBy"] for row in found.values()} == {"Derived" if block > 200 else "Creation"}


def test_checked_blocks_of_now(client: TestClient[Any]) -> None:
    for query in ("", "?sort=wallet"):
        assert {row["checkedBlockNumber"] for row in rows_of(client, f"{TOKEN}/cap-table{query}")} == {400}
        assert {row["openedBy"] for row in rows_of(client, f"{TOKEN}/cap-table{query}")} == {"Observed"}
    positions = client.get(f"{WALLET}/balances").json()["current"]
    # The strange token was read only once; its opening balance is derived from that reading, hence unchecked.
    assert {row["token"]["symbol"]: (row["checkedBlockNumber"], row["openedBy"]) for row in positions} == {
        "ETH": (400, "Observed"),
        None: (None, "Derived"),
    }


def test_a_zero_supply_and_an_unknown_one(world: World) -> None:
    rows = marts_rows(world)
    rows["supply_changes"] = [{**rows["supply_changes"][0], "total_supply_raw": 0, "total_supply": "0"}]
    publish(world.settings.serving_dir, 1, rows)
    with world.client() as client:
        for block, status, supply in ((110, "ZeroSupply", "0"), (260, "Unknown", None)):
            table = client.get(f"{TOKEN}/cap-table?asOf=block:{block}").json()
            assert (table["totalSupplyStatus"], table["totalSupply"]) == (status, supply)
            assert {(row["percentage"], row["percentageStatus"]) for row in table["data"]} == {(None, status)}
            assert table["unattributed"]["percentage"] is None


def test_behaviour_is_shown(client: TestClient[Any]) -> None:
    assert client.get(TOKEN).json()["behaviour"] == "Standard"
    assert client.get(f"/v1/tokens/{NFT_TOKEN_ID}").json()["behaviour"] is None


def test_internal_transfers_and_failures(world: World) -> None:
    rows = marts_rows(world)
    sample = rows["wallet_activities"][0] | {"block_number": 380, "block_time": time_of(380).replace(tzinfo=None)}
    fields = ("activity_id", "activity_type", "status", "log_index", "trace_index", "amount_raw")
    rows["wallet_activities"] += [
        sample | dict(zip(fields, values, strict=True))
        for values in (
            ("d", "Internal", "Finalized", -1, 0, 3),
            ("c", "Internal", "Finalized", -1, 2, 4),
            ("b", "Internal", "Finalized", -1, 10, 5),
            ("a", "TransferOut", "Failed", -1, None, 0),
        )
    ]
    publish(world.settings.serving_dir, 1, rows)
    query = f"from={stamp(380)}&to={stamp(381)}"
    with world.client() as client:
        for sort, ids in (("date", ["a", "d", "c", "b"]), ("-date", ["b", "c", "d", "a"])):
            whole = rows_of(client, f"{WALLET}/activities?sort={sort}&{query}")
            assert [row["id"] for row in whole] == ids
            paged: list[Any] = []
            url = f"{WALLET}/activities?sort={sort}&{query}&limit=1"
            while url:
                answer = client.get(url)
                paged += answer.json()["data"]
                url = answer.links["next"]["url"] if "next" in answer.links else ""
            assert paged == whole
        newest = whole[0]
        assert (newest["type"], newest["traceIndex"], newest["transactionHash"], newest["counterparty"]) == (
            "Internal",
            10,
            sample["transaction_hash"],
            HOLDERS["h4"],
        )
        failed = whole[-1]
        assert (failed["type"], failed["status"], failed["amountRaw"]) == ("TransferOut", "Failed", "0")
        assert failed["traceIndex"] is None


def test_times_of_the_marts_are_utc_in_any_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert as_utc(time_of(100).replace(tzinfo=None)) == time_of(100)
        assert as_naive(time_of(100)) == time_of(100).replace(tzinfo=None)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_invalid_balance_history_requests_are_refused(client: TestClient[Any]) -> None:
    found = problem(client.get(f"{WALLET}/balances?from=2000-01-01&interval=1h"), 422, "invalid-parameter")
    assert found["errors"][0]["code"] == "too-many-intervals"
    both = problem(client.get(f"{WALLET}/balances?asOf=block:150&interval=1h"), 422, "invalid-parameter")
    assert both["errors"][0]["code"] == "conflicting-parameters"


def test_zero_address_is_shown_unchanged(client: TestClient[Any]) -> None:
    assert rows_of(client, f"{TOKEN}/activities?type=Mint")[0]["fromWallet"] == ZERO
