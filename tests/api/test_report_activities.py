"""Data of the wallet activity report, against the API's rows, sorted and summed in plain Python."""

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from api.examples import EXAMPLE_WALLET_ID
from tests.api.marts import publish
from tests.api.reported import NAMES, ODD_ADDRESS, PRICE_CHANGE, TOKEN_ADDRESS, holder, publish_reported, reported_rows
from tests.api.test_errors import problem
from tests.api.test_report_data import embed
from tests.api.valued import naive, sum_of
from tests.api.world import FOREIGN_WALLET_ID, World, copy_world, time_of

WALLET = f"/v1/wallets/{EXAMPLE_WALLET_ID}"
DATA = "/embed/data/wallet-activity"
HOLDER_NAMES = {holder(number): name for number, name in NAMES.items()}


@pytest.fixture(scope="module")
def client(template: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient[Any]]:
    """A client for read-only tests."""
    made = copy_world(template, tmp_path_factory.mktemp("reported"))
    publish_reported(made)
    with made.client() as client:
        yield client
    made.store.close()


@pytest.fixture
def own(template: World, tmp_path: Path) -> Iterator[World]:
    """A world for tests that modify it."""
    copied = copy_world(template, tmp_path)
    publish_reported(copied)
    yield copied
    copied.store.close()


def wallet(client: TestClient[Any], **query: str) -> dict[str, str]:
    return embed(client, "/v1/reports/wallet-activity", walletId=EXAMPLE_WALLET_ID, **query)


def rows(client: TestClient[Any], headers: dict[str, str], **query: Any) -> list[dict[str, Any]]:
    """Return the report's rows of all pages."""
    found: list[dict[str, Any]] = []
    total = None
    while total is None or len(found) < total:
        answer = client.get(f"{DATA}/rows", params={"limit": 40, "offset": len(found), **query}, headers=headers)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        assert len(page["data"]) == min(40, page["total"] - len(found))
        total = page["total"]
        found += page["data"]
    return found


def walked(client: TestClient[Any], **query: str) -> list[dict[str, Any]]:
    """Return the API's activities of all pages, oldest first, with names."""
    found: list[dict[str, Any]] = []
    asked = {"limit": "50", "sort": "date", **query}
    while True:
        answer = client.get(f"{WALLET}/activities", params=asked).json()
        found += answer["data"]
        if answer["page"]["nextCursor"] is None:
            break
        asked["cursor"] = answer["page"]["nextCursor"]
    return [row | {"counterpartyName": HOLDER_NAMES.get((row["counterparty"] or "").lower())} for row in found]


KEYS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "date": lambda row: 0,
    "type": lambda row: row["type"],
    "token": lambda row: (row["token"]["symbol"] or row["token"]["ledgerId"]).lower(),
    "quantity": lambda row: None if row["amount"] is None else Decimal(row["amount"]),
    "value": lambda row: None if row["value"] is None else Decimal(row["value"]),
    "counterparty": lambda row: row["counterparty"] and row["counterparty"].lower(),
}


def in_order(found: list[dict[str, Any]], sort: str) -> list[dict[str, Any]]:
    """Sort rows given oldest first; equal rows stay in order of time, and rows without a key come last."""
    key = KEYS[sort.removeprefix("-")]
    backwards = found[::-1] if sort.startswith("-") else found
    known = [row for row in backwards if key(row) is not None]
    return sorted(known, key=key, reverse=sort.startswith("-")) + [row for row in backwards if key(row) is None]


@pytest.mark.ci
@pytest.mark.parametrize("sort", [sign + key for key in KEYS for sign in ("", "-")])
def test_every_sort_order_equals_that_of_the_json_rows(client: TestClient[Any], sort: str) -> None:
    expected = in_order(walked(client), sort)
    assert len(expected) == 90
    assert rows(client, wallet(client), sort=sort) == expected


def test_the_example_has_equal_and_missing_keys(client: TestClient[Any]) -> None:
    everything = walked(client)
    assert None in {KEYS["value"](row) for row in everything}
    assert None in {KEYS["counterparty"](row) for row in everything}
    assert None in {KEYS["quantity"](row) for row in everything}
    for key in ("value", "quantity", "counterparty"):
        assert len({KEYS[key](row) for row in everything}) < 90


@pytest.mark.parametrize(
    "query",
    [
        {"type": "Mint"},
        {"direction": "In", "sort": "-value"},
        {"token": "native"},
        {"token": TOKEN_ADDRESS, "type": "Fee"},
        {"token": ODD_ADDRESS, "sort": "quantity"},
        {"q": "treasury"},
        {"q": "STRASSE", "direction": "Out"},
        {"q": "00000012"},
        {"q": "0X0001", "sort": "counterparty"},
        {"q": "_"},
        {"from": "2026-02-10", "to": "2026-02-20T12:00:00Z"},
    ],
)
def test_search_and_filters(client: TestClient[Any], query: dict[str, str]) -> None:
    def matches(row: dict[str, Any]) -> bool:
        q = query.get("q")
        texts = [row["transactionHash"], (row["counterparty"] or "").lower()]
        is_found = q is None or any(q.lower() in text for text in texts)
        is_named = q is not None and q.casefold() in (row["counterpartyName"] or "").casefold()
        return (
            (is_found or is_named)
            and query.get("type", row["type"]) == row["type"]
            and query.get("direction", row["direction"]) == row["direction"]
            and query.get("token", row["token"]["ledgerId"].lower()) == row["token"]["ledgerId"].lower()
            and query.get("from", "") <= row["date"] < query.get("to", "9")
        )

    expected = in_order([row for row in walked(client) if matches(row)], query.get("sort", "-date"))
    assert rows(client, wallet(client), **query) == expected
    assert len(expected) < 90


def test_link_with_a_range_shows_only_that_range(client: TestClient[Any]) -> None:
    bounds = {"from": "2026-02-05", "to": "2026-02-25"}
    headers = wallet(client, **bounds)
    assert rows(client, headers) == walked(client, **bounds)[::-1]
    assert (
        rows(client, headers, **{"from": "2026-01-01", "to": "2026-02-08"})
        == walked(client, **{"from": "2026-02-05", "to": "2026-02-08"})[::-1]
    )
    assert rows(client, headers, **{"from": "2026-03-01", "to": "2026-03-08"}) == []


def left_out(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Count movements without a value by asset and reason."""
    counts = Counter((row["token"]["ledgerId"].lower(), row["valueStatus"]) for row in rows if row["value"] is None)
    tokens = {row["token"]["ledgerId"].lower(): row["token"] for row in rows}
    return [
        {"token": tokens[asset], "status": status, "count": count, "pricedFrom": None}
        for (asset, status), count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    ]


@pytest.mark.parametrize("bounds", [{}, {"from": "2026-02-05", "to": "2026-02-25"}, {"to": "2026-03-05T10:00:00Z"}])
def test_summary_totals_equal_the_sums_of_the_rows(client: TestClient[Any], bounds: dict[str, str]) -> None:
    report = client.get(f"{DATA}/summary", headers=wallet(client, **bounds)).json()
    everything = walked(client, **bounds)
    told = client.get(f"{WALLET}/activities", params=bounds).json()
    assert report["coverage"] == told["coverage"]
    assert report["range"] == {"from": told["coverage"]["from"], "to": told["coverage"]["to"]}
    assert report["activityCount"] == len(everything)
    others = {row["counterparty"] for row in everything if row["counterparty"] and row["type"] != "Self"}
    assert report["counterpartyCount"] == len(others)
    assert report["lastActivityAt"] == everything[-1]["date"]
    assert report["types"] == sorted({row["type"] for row in everything})
    assert {one["ledgerId"]: one for one in report["tokens"]} == {
        row["token"]["ledgerId"]: row["token"] for row in everything
    }
    moved = [row for row in everything if row["status"] != "Failed" and row["amountRaw"] != "0"]
    received, sent = (
        sum_of(row["value"] for row in moved if row["direction"] == direction and row["value"])
        for direction in ("In", "Out")
    )
    assert report["flows"] == {
        "in": received,
        "out": sent,
        "net": sum_of([received, f"-{sent}"]),
        "status": "Priced",
        "isComplete": False,
        "leftOut": left_out([row for row in moved if row["direction"]]),
    }
    expected = []
    for day, kind in sorted({(row["date"][:10], row["type"]) for row in everything}):
        group = [row for row in everything if (row["date"][:10], row["type"]) == (day, kind)]
        counted = [row for row in moved if (row["date"][:10], row["type"]) == (day, kind)]
        values = [row["value"] for row in counted if row["value"]]
        missing = {row["valueStatus"] for row in counted if row["value"] is None}
        why = next((one for one in ("UnknownDecimals", "UnknownAmount") if one in missing), None)
        status = "Priced" if values or why is None else why
        expected.append(
            {
                "date": day,
                "type": kind,
                "count": len(group),
                "foldedCount": 0,
                "value": sum_of(values) if status == "Priced" else None,
                "valueStatus": status,
                "valueComplete": len(values) == len(counted),
                **{
                    name: sum_of(row["value"] for row in counted if row["value"] and row["direction"] == direction)
                    if status == "Priced"
                    else None
                    for name, direction in (("valueIn", "In"), ("valueOut", "Out"))
                },
            }
        )
    assert report["timeline"] == expected
    assert {one["valueStatus"] for one in expected} == {"Priced", "UnknownDecimals", "UnknownAmount"}


def test_movements_before_the_first_price_name_its_start(own: World) -> None:
    marts = reported_rows(own)
    key = own.subject_keys[EXAMPLE_WALLET_ID]
    first = time_of(PRICE_CHANGE)
    values = [row for row in marts["wallet_activity_values"] if row["subject_key"] == key]
    without = {row["activity_id"] for row in values if row["block_time"] < naive(first)}
    for row in values:
        if row["activity_id"] in without:
            row |= {"price": None, "price_text": None, "value": None, "value_status": "NoPrice"}
    marts["system_prices"] = [row for row in marts["system_prices"] if row["valid_from"] >= naive(first)]
    publish(own.settings.serving_dir, 2, marts)
    with own.client() as client:
        left = client.get(f"{DATA}/summary", headers=wallet(client)).json()["flows"]["leftOut"]
        everything = walked(client)
    moved = [row for row in everything if row["direction"] and row["status"] != "Failed" and row["amountRaw"] != "0"]
    assert {one["status"]: one["pricedFrom"] for one in left if one["status"] != "NoPrice"} == {
        "UnknownDecimals": None,
        "UnknownAmount": None,
    }
    found = {one["token"]["ledgerId"]: (one["count"], one["pricedFrom"]) for one in left if one["status"] == "NoPrice"}
    assert found == {
        asset: (count, f"{first:%Y-%m-%dT%H:%M:%SZ}")
        for asset, count in Counter(row["token"]["ledgerId"] for row in moved if row["id"] in without).items()
    }
    assert found


@pytest.mark.ci
def test_folded_fees_are_shown_with_their_transaction(own: World) -> None:
    """A fee is shown with the first other activity of its transaction and not counted as a row."""
    marts = reported_rows(own)
    key = own.subject_keys[EXAMPLE_WALLET_ID]
    activities = [row for row in marts["wallet_activities"] if row["subject_key"] == key]
    values = {row["activity_id"]: row for row in marts["wallet_activity_values"] if row["subject_key"] == key}
    fees = [row for row in activities if row["activity_type"] == "Fee"]
    moves = [row for row in activities if row["activity_type"] != "Fee"]
    place = ("block_number", "block_hash", "block_time", "transaction_index", "transaction_hash")
    # One fee accompanies two movements, one accompanies one; the other fees are alone.
    together = ((fees[0], (moves[0], moves[1])), (fees[1], (moves[2],)))
    for fee, parties in together:
        for log_index, row in enumerate(parties, start=1):
            row |= {name: fee[name] for name in place} | {"log_index": log_index}
            if value := values.get(row["activity_id"]):
                value |= {name: fee[name] for name in place if name in value}
        fee["log_index"] = -1
    publish(own.settings.serving_dir, 2, marts)
    expected = {fee["activity_id"]: parties[0]["activity_id"] for fee, parties in together}
    with own.client() as client:
        headers = wallet(client)
        apart = rows(client, headers)
        assert len(apart) == len(activities)
        folded = rows(client, headers, fees="folded")
        assert folded == [row for row in apart if row["id"] not in expected]
        by_id = {row["id"]: row for row in apart}
        page = client.get(f"{DATA}/rows", params={"fees": "folded", "limit": 200}, headers=headers).json()
        assert {one["fee"]["id"]: one["activityId"] for one in page["fees"]} == expected
        assert all(one["fee"] == by_id[one["fee"]["id"]] for one in page["fees"])
        # Without `fees=folded` there is no `fees` field; with `type=Fee`, fees are rows.
        assert "fees" not in client.get(f"{DATA}/rows", headers=headers).json()
        assert rows(client, headers, fees="folded", type="Fee") == [row for row in apart if row["type"] == "Fee"]
        asked = [{"fees": "folded", "limit": 1, "offset": offset} for offset in range(len(folded))]
        pages = [client.get(f"{DATA}/rows", params=one, headers=headers).json() for one in asked]
        assert [one["data"][0] for one in pages] == folded
        assert sorted(fee["fee"]["id"] for one in pages for fee in one["fees"]) == sorted(expected)
        report = client.get(f"{DATA}/summary", headers=headers).json()
        assert (report["activityCount"], report["foldedFeeCount"]) == (len(activities), len(expected))
        told = {(one["date"], one["type"]): one["foldedCount"] for one in report["timeline"] if one["foldedCount"]}
        assert sum(told.values()) == len(expected)
        assert told.keys() == {(by_id[fee]["date"][:10], "Fee") for fee in expected}


def expect_positions(client: TestClient[Any], report: dict[str, Any], balances: dict[str, Any]) -> None:
    """Check positions against balances, and their changes against the balances of the day before."""
    at = datetime.fromisoformat(balances["asOf"]["at"]) - timedelta(days=1)
    then = client.get(f"{WALLET}/balances", params={"asOf": f"{at:%Y-%m-%dT%H:%M:%S.%fZ}"}).json()["current"]
    before = {one["token"]["ledgerId"]: one for one in then}
    told = []
    for position in report["balances"]:
        change, status = position.pop("change24h"), position.pop("change24hStatus")
        told.append(position)
        pair = [before.get(position["token"]["ledgerId"]), position]
        if unknown := [one["valueStatus"] for one in pair if one and one["value"] is None]:
            assert change is None
            assert status in unknown
        else:
            base, value = (Fraction(one["value"]) if one else Fraction(0) for one in pair)
            expected = (round(100 * (value - base) / base, 12), "Priced") if base else (None, "ZeroBase")
            assert (None if change is None else Fraction(change), status) == expected
    assert told == balances["current"]


def test_current_value_and_balances_equal_those_of_the_api(client: TestClient[Any]) -> None:
    report = client.get(f"{DATA}/summary", headers=wallet(client)).json()
    told = client.get(WALLET).json()
    for name in ("totalValue", "totalValueStatus", "valueComplete", "unpriced"):
        assert report[name] == told[name]
    for name in ("change24h", "change24hStatus", "change24hOmitted"):
        assert report[name] == told[name]
    balances = client.get(f"{WALLET}/balances").json()
    assert report["asOf"] == balances["asOf"]
    expect_positions(client, report, balances)
    assert report["isCurrent"]
    assert report["holdingsComplete"] == balances["holdingsComplete"]
    assert report["reconciliation"] == {"reconciled": 2, "adjusted": 0, "unchecked": 1, "status": "Counted"}
    history = client.get(f"{WALLET}/value-history", params={"from": "2026-02-01"}).json()["points"]
    assert report["valueHistory"] == history
    assert {point["valueStatus"] for point in history} == {"Priced", "NotCovered"}


def test_past_value_and_balances_equal_those_of_the_api(client: TestClient[Any]) -> None:
    end = datetime.fromisoformat("2026-02-25T00:00:00Z")
    report = client.get(f"{DATA}/summary", headers=wallet(client, to="2026-02-25")).json()
    before = "2026-02-24T23:59:59.999999Z"
    balances = client.get(f"{WALLET}/balances", params={"asOf": before}).json()
    assert report["asOf"] == balances["asOf"]
    expect_positions(client, report, balances)
    assert not report["isCurrent"]
    assert datetime.fromisoformat(report["asOf"]["blockTime"]) < end
    priced = [one["value"] for one in balances["current"] if one["value"]]
    assert (report["totalValue"], report["totalValueStatus"]) == (sum_of(priced), "Priced")
    assert (report["valueComplete"], report["unpriced"]) == (False, ["0x" + "7" * 40])
    # Neither balances nor the price changed in those 24 hours.
    assert (report["change24h"], report["change24hStatus"]) == ("0", "Partial")
    assert report["change24hOmitted"] == ["0x" + "7" * 40]
    assert report["valueHistory"][-1]["date"] == "2026-02-24"


def test_past_24_hour_change(client: TestClient[Any]) -> None:
    """At block 11,000 all balances are twice those of 24 hours (7,200 blocks) earlier; they doubled after 10,100."""
    shown = f"{time_of(11_000):%Y-%m-%dT%H:%M:%SZ}"
    report = client.get(f"{DATA}/summary", headers=wallet(client, to=shown)).json()
    assert (report["change24h"], report["change24hStatus"]) == ("100", "Partial")
    changes = {one["token"]["symbol"]: (one["change24h"], one["change24hStatus"]) for one in report["balances"]}
    assert changes["ETH"] == ("100", "Priced")
    assert changes[None] == (None, "UnknownDecimals")
    early = f"{time_of(5_000):%Y-%m-%dT%H:%M:%SZ}"
    report = client.get(f"{DATA}/summary", headers=wallet(client, to=early)).json()
    assert (report["change24h"], report["change24hStatus"]) == (None, "NotCovered")
    assert {one["change24hStatus"] for one in report["balances"]} == {"NotCovered"}


def test_end_in_a_gap_shows_the_newest_block_before_it(client: TestClient[Any]) -> None:
    shown = f"{time_of(64_000):%Y-%m-%dT%H:%M:%SZ}"
    report = client.get(f"{DATA}/summary", headers=wallet(client, to=shown)).json()
    assert (report["asOf"]["blockNumber"], report["isCurrent"]) == (60_000, False)
    assert [gap["reason"] for gap in report["coverage"]["gaps"]] == ["TrackingDisabled"]
    assert (report["totalValueStatus"], report["flows"]["isComplete"]) == ("Priced", False)


@pytest.mark.ci
@pytest.mark.parametrize("batch", [7, 5_000])
@pytest.mark.parametrize("query", [{}, {"sort": "value"}, {"sort": "-counterparty"}, {"sort": "token", "q": "0x0"}])
def test_a_file_has_all_rows(
    client: TestClient[Any], query: dict[str, str], batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.http.calls.Services.batch_rows", batch)
    headers = wallet(client)
    token = headers["Authorization"].removeprefix("Bearer ")
    saved = client.post(f"{DATA}/csv", data={"token": token, **query}, headers={"Authorization": "nobody's"})
    assert saved.status_code == 200
    assert saved.headers["content-disposition"] == 'attachment; filename="wallet-activity-300000.csv"'
    assert saved.text == client.get(f"{DATA}/csv", params=query, headers=headers).text

    def text(name: str, value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, list):
            return json.dumps(value, separators=(",", ":"))
        return f"'{value}" if name == "counterpartyName" and value.startswith("=") else str(value)

    expected = []
    for row in rows(client, headers, **query):
        token_fields = {f"token.{name}": value for name, value in row["token"].items()}
        flat = {key: value for key, value in row.items() if key != "token"} | token_fields
        expected.append({name: text(name, value) for name, value in flat.items()})
    assert list(csv.DictReader(io.StringIO(saved.text))) == expected


def test_file_has_the_same_filters_as_the_rows(client: TestClient[Any]) -> None:
    headers = wallet(client)
    token = headers["Authorization"].removeprefix("Bearer ")
    form = {
        "token": token,
        "asset": "native",
        "type": "Fee",
        "direction": "Out",
        "from": "2026-02-03",
        "to": "2026-03-03",
    }
    saved = client.post(f"{DATA}/csv", data=form)
    query = {"token": "native", "type": "Fee", "direction": "Out", "from": "2026-02-03", "to": "2026-03-03"}
    expected = [row["id"] for row in rows(client, headers, **query)]
    assert expected
    assert [row["id"] for row in csv.DictReader(io.StringIO(saved.text))] == expected
    refused = client.post(f"{DATA}/csv", data=form | {"tokens": "1"})
    problem(refused, 400, "unknown-field")


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ({"sort": "amount"}, 422, "invalid-parameter"),
        ({"type": "Gift"}, 422, "invalid-parameter"),
        ({"token": "0x12"}, 422, "invalid-address"),
        ({"direction": "Up"}, 422, "invalid-parameter"),
        ({"from": "yesterday"}, 400, "malformed-parameter"),
        ({"limit": "1000"}, 422, "invalid-parameter"),
        ({"walletId": FOREIGN_WALLET_ID}, 400, "unknown-parameter"),
        ({"dataVersion": "7"}, 410, "cursor-expired"),
    ],
)
def test_bad_parameters_are_refused(client: TestClient[Any], query: dict[str, str], status: int, code: str) -> None:
    answer = client.get(f"{DATA}/rows", params=query, headers=wallet(client))
    assert answer.status_code == status
    found = answer.json()
    assert code in {found["code"], *(error["code"] for error in found["errors"])}


def test_wallet_without_collected_data_shows_the_reason(own: World) -> None:
    with own.client() as client:
        made = client.post("/v1/wallets", json={"ledger": "ethereum-main", "ledgerId": "0x" + "e1" * 20}).json()
        headers = embed(client, "/v1/reports/wallet-activity", walletId=made["id"])
        report = client.get(f"{DATA}/summary", headers=headers).json()
        told = client.get(f"/v1/wallets/{made['id']}/balances").json()
        assert rows(client, headers) == []
    assert (report["asOf"], report["coverage"]) == (told["asOf"], told["coverage"])
    assert (report["totalValue"], report["totalValueStatus"]) == (None, "NotCovered")
    flows = {"in": None, "out": None, "net": None, "status": "NotCovered", "isComplete": False, "leftOut": []}
    assert report["flows"] == flows
    assert report["reconciliation"]["status"] == "NotYetCollected"
    assert (report["activityCount"], report["lastActivityAt"], report["valueHistory"]) == (0, None, [])


def test_rows_are_complete_with_any_characters_in_symbols(own: World) -> None:
    """Token deployers choose symbols freely, and paging by symbol continues after the previous row's symbol."""
    changed = reported_rows(own)
    for number, row in enumerate(changed["wallet_activities"]):
        row["token_symbol"] = ("\U0010fffd" * 3, "~~", "", "'", None)[number % 5]
    publish(own.settings.serving_dir, 1, changed)
    with own.client() as client:
        headers = wallet(client)
        everything = {row["id"] for row in walked(client)}
        for sort in ("token", "-token"):
            assert {row["id"] for row in rows(client, headers, sort=sort)} == everything


def test_days_are_the_last_366(own: World) -> None:
    changed = reported_rows(own)
    key = own.subject_keys[EXAMPLE_WALLET_ID]
    start = naive(time_of(100) - timedelta(days=800))
    for row in changed["coverage"]:
        if row["subject_key"] == key and row["from_block"] == 100:
            row["from_time"] = start
    publish(own.settings.serving_dir, 1, changed)
    with own.client() as client:
        history = client.get(f"{DATA}/summary", headers=wallet(client)).json()["valueHistory"]
    assert len(history) == 366
    assert history[-1]["date"] == f"{time_of(300_000):%Y-%m-%d}"
