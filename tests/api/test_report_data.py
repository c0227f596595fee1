"""Data of the cap table report, against the API's rows, sorted, searched and summed in plain Python."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from api.engine.serving import Snapshot
from api.examples import EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from api.reports.schemas.links import Report
from control.models import Subject
from tests.api.marts import publish
from tests.api.reported import (
    DECIMALS,
    NAMES,
    NEWEST,
    RANGES,
    STEPS,
    holder,
    link_unchecked,
    publish_reported,
    reported_rows,
    state_at,
)
from tests.api.test_errors import problem
from tests.api.world import (
    BIG_TOKEN_ID,
    FRESH_TOKEN_ID,
    HOLDERS,
    UNKNOWN_TOKEN_ID,
    WIDE_TOKEN_ID,
    World,
    copy_world,
    percentage_of,
    text_of,
    time_of,
)

TOKEN = f"/v1/tokens/{EXAMPLE_TOKEN_ID}"
DATA = "/embed/data/cap-table"
PAST = 250_000
NUMBERS = {holder(number): number for number in STEPS}
MONTH = timedelta(days=30)


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


def embed(client: TestClient[Any], path: str, **query: str) -> dict[str, str]:
    """Return the authorization header of a fresh report link."""
    link = client.get(path, params=query)
    assert link.status_code == 200, link.text
    return {"Authorization": f"Bearer {link.json()['reportUrl'].partition('#t=')[2]}"}


def embed_unchecked(client: TestClient[Any], report: Report, **params: str) -> dict[str, str]:
    """Return the authorization header of a report link without checking its moments."""
    services, key = client.app.state.services, client.headers["authorization"].removeprefix("Bearer ")
    url = link_unchecked(services.settings, services.store, key, report, **params)
    return {"Authorization": f"Bearer {url.partition('#t=')[2]}"}


def cap_table(client: TestClient[Any], as_of: str | None = None, token_id: str = EXAMPLE_TOKEN_ID) -> dict[str, str]:
    moment = {} if as_of is None else {"asOf": as_of}
    return embed(client, "/v1/reports/cap-table", tokenId=token_id, **moment)


def rows(client: TestClient[Any], headers: dict[str, str], **query: Any) -> list[dict[str, Any]]:
    """Return the report's rows of all pages."""
    found: list[dict[str, Any]] = []
    total = None
    while total is None or len(found) < total:
        asked = {"limit": 37, "offset": len(found), **query}
        answer = client.get(f"{DATA}/rows", params=asked, headers=headers)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        assert (page["limit"], page["offset"]) == (37, len(found))
        assert len(page["data"]) == min(37, page["total"] - len(found))
        total = page["total"]
        found += page["data"]
    return found


def walked(client: TestClient[Any], as_of: str | None = None, token: str = TOKEN) -> list[dict[str, Any]]:
    """Return the API's cap table of all pages."""
    query = {"limit": "50"} | ({} if as_of is None else {"asOf": as_of})
    answer = client.get(f"{token}/cap-table", params=query).json()
    found = list(answer["data"])
    while answer["page"]["nextCursor"]:
        answer = client.get(f"{token}/cap-table", params=query | {"cursor": answer["page"]["nextCursor"]}).json()
        found += answer["data"]
    return found


def name_of(row: dict[str, Any]) -> str | None:
    return NAMES.get(NUMBERS[row["wallet"].lower()])


def change_of(row: dict[str, Any], block: int) -> tuple[str | None, str]:
    """Return the change of a quantity in 30 days and its status, from the steps."""
    then = (time_of(block) - MONTH - time_of(100)) // timedelta(seconds=12) + 100
    if not any(first <= then <= last for first, last in RANGES):
        return None, "NotCovered"
    before = state_at(then).get(NUMBERS[row["wallet"].lower()])
    if before is None:
        return None, "UnknownBefore"
    return text_of(int(row["quantityRaw"]) - before, DECIMALS), "Known"


def as_shown(row: dict[str, Any], block: int) -> dict[str, Any]:
    """Return a row of the API with the report's additional fields."""
    number = NUMBERS[row["wallet"].lower()]
    change, status = change_of(row, block)
    wallet_id = f"wal_01k9zr3m5e8v2c7q4w6t1x00{number:02d}" if number in NAMES else None
    return row | {
        "name": name_of(row),
        "walletId": wallet_id,
        "change30d": change,
        "change30dStatus": status,
        "walletTrackingStatus": "disabled" if wallet_id else None,
    }


KEYS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "rank": lambda row: row["rank"],
    "wallet": lambda row: row["wallet"].lower(),
    "quantity": lambda row: (int(row["quantityRaw"]), -row["rank"]),
    "percentage": lambda row: (int(row["quantityRaw"]), -row["rank"]),
    "value": lambda row: (int(row["quantityRaw"]), -row["rank"]),
    "reconciliation": lambda row: (row["reconciliation"], row["rank"]),
}


@pytest.mark.ci
@pytest.mark.parametrize("as_of", [None, f"block:{PAST}"])
@pytest.mark.parametrize("sort", [sign + key for key in KEYS for sign in ("", "-")])
def test_every_sort_order_equals_that_of_the_json_rows(client: TestClient[Any], sort: str, as_of: str | None) -> None:
    block = NEWEST if as_of is None else PAST
    expected = [as_shown(row, block) for row in walked(client, as_of)]
    assert len(expected) > 74
    key = KEYS[sort.removeprefix("-")]
    expected.sort(key=key, reverse=sort.startswith("-"))
    assert rows(client, cap_table(client, as_of), sort=sort) == expected


def test_the_example_has_every_kind_of_change(client: TestClient[Any]) -> None:
    shown = rows(client, cap_table(client))
    assert {row["change30dStatus"] for row in shown} == {"Known", "UnknownBefore"}
    signs = {(row["change30d"] or "-0")[0] == "-" for row in shown if row["change30dStatus"] == "Known"}
    assert signs == {True, False}
    assert any(row["change30d"] == "0" for row in shown)
    # After the gap, the moment 30 days earlier is in the earlier range or, if in the gap, not covered.
    assert {row["change30dStatus"] for row in rows(client, cap_table(client, f"block:{PAST}"))} >= {"Known"}
    in_gap = rows(client, cap_table(client, "block:277000"))
    assert {(row["change30d"], row["change30dStatus"]) for row in in_gap} == {(None, "NotCovered")}


@pytest.mark.ci
@pytest.mark.parametrize("as_of", [None, f"block:{PAST}"])
@pytest.mark.parametrize(
    "query",
    [
        {"q": "0000001"},
        {"q": "00000010", "sort": "-wallet"},
        {"q": "treasury"},
        {"q": "STRASSE"},
        {"q": "warm</B>", "sort": "reconciliation"},
        {"q": "nobody has this name"},
        {"q": "%"},
        {"q": "' or 1=1 --"},
        {"reconciliation": "Adjusted", "sort": "-quantity"},
        {"reconciliation": "Unchecked", "q": "0x00"},
        {"reconciliation": "Reconciled", "sort": "wallet"},
    ],
)
def test_search_and_filter(client: TestClient[Any], query: dict[str, str], as_of: str | None) -> None:
    block = NEWEST if as_of is None else PAST

    def matches(row: dict[str, Any]) -> bool:
        q = query.get("q", "")
        is_found = q.lower() in row["wallet"].lower() or q.casefold() in (name_of(row) or "").casefold()
        return is_found and query.get("reconciliation", row["reconciliation"]) == row["reconciliation"]

    sort = query.get("sort", "rank")
    expected = [as_shown(row, block) for row in walked(client, as_of) if matches(row)]
    expected.sort(key=KEYS[sort.removeprefix("-")], reverse=sort.startswith("-"))
    assert rows(client, cap_table(client, as_of), **query) == expected


def test_a_search_finds_something_and_leaves_something_out(client: TestClient[Any]) -> None:
    headers = cap_table(client)
    everybody = len(rows(client, headers))
    for query in ({"q": "0000001"}, {"q": "treasury"}, {"reconciliation": "Adjusted"}, {"reconciliation": "Unchecked"}):
        assert 0 < len(rows(client, headers, **query)) < everybody


@pytest.mark.parametrize("as_of", [None, f"block:{PAST}", "2026-02-05", "block:277000"])
def test_summary_equals_that_of_the_api(client: TestClient[Any], as_of: str | None) -> None:
    query = {} if as_of is None else {"asOf": as_of}
    told = client.get(f"{TOKEN}/cap-table", params=query).json()
    report = client.get(f"{DATA}/summary", headers=cap_table(client, as_of)).json()
    same = ("asOf", "coverage", "totalSupply", "totalSupplyStatus", "holderCount", "holderCountStatus")
    for name in (*same, "unattributed", "concentration", "currency"):
        assert report[name] == told[name]
    everybody = walked(client, as_of)
    assert report["isCurrent"] == (as_of is None)
    assert report["dataVersion"] == 1
    assert report["token"] == {
        "id": EXAMPLE_TOKEN_ID,
        "name": None,
        "symbol": "SMALL",
        "ledger": "ethereum-main",
        "network": "ethereum",
        "networkDisplayName": "Ethereum",
        "explorer": "https://explorer.example",
        "ledgerId": "0xaAaAaAaaAaAaAaaAaAAAAAAAAaaaAaAaAaaAaaAa",
        "decimals": DECIMALS,
    }
    names = ("rank", "wallet", "quantity", "percentage", "percentageStatus")
    largest = [{name: row[name] for name in names} | {"name": name_of(row)} for row in everybody[:10]]
    assert report["largest"] == largest
    counts = {kind: sum(row["reconciliation"] == kind for row in everybody) for kind in ("Reconciled", "Adjusted")}
    assert report["reconciliation"] == {
        "reconciled": counts["Reconciled"],
        "adjusted": counts["Adjusted"],
        "unchecked": len(everybody) - sum(counts.values()),
        "status": "Counted",
    }
    history = client.get(f"{TOKEN}/market-capitalization").json()
    if as_of is None:
        assert (report["price"], report["priceStatus"]) == (history["current"]["price"], "Priced")
        assert report["marketCapitalization"] == history["current"]["value"]
        assert report["priceEffectiveFrom"] == f"{time_of(100_000):%Y-%m-%dT%H:%M:%SZ}"
    else:
        # The value of a holding of one whole token is the price of that moment.
        row = everybody[0]
        assert Fraction(report["price"]) == Fraction("3.000000000000000001" if "block" in as_of else "2.5")
        assert round(Fraction(row["quantity"]) * Fraction(report["price"]) * 10**18) == Fraction(row["value"]) * 10**18
        assert Fraction(report["marketCapitalization"]) == 10**9 * Fraction(report["price"])


@pytest.mark.parametrize("as_of", [None, f"block:{PAST}"])
def test_curve_sums_the_largest_holders(client: TestClient[Any], as_of: str | None) -> None:
    curve = client.get(f"{DATA}/summary", headers=cap_table(client, as_of)).json()["curve"]
    everybody = [int(row["quantityRaw"]) for row in walked(client, as_of)]
    assert curve == [
        {"holders": point["holders"], "percentage": percentage_of(sum(everybody[: point["holders"]]), 10**15)}
        for point in curve
    ]
    counts = [point["holders"] for point in curve]
    assert counts == sorted(set(counts))
    assert (counts[0], counts[-1]) == (1, len(everybody))
    assert 40 < len(counts) <= 80


@pytest.mark.parametrize("as_of", [None, f"block:{PAST}"])
def test_holders_over_time_are_counted_day_by_day(client: TestClient[Any], as_of: str | None) -> None:
    report = client.get(f"{DATA}/summary", headers=cap_table(client, as_of)).json()
    found = report["holdersOverTime"]
    assert report["holdersInterval"] == "1d"
    last = NEWEST if as_of is None else PAST
    days = (time_of(last).date() - date(2026, 2, 1)).days + 1
    starts = [datetime(2026, 2, 1, tzinfo=UTC) + timedelta(days=number) for number in range(days)]
    assert [datetime.fromisoformat(one["from"]) for one in found] == starts
    assert "date" not in found[0]
    assert datetime.fromisoformat(found[-1]["at"]) == time_of(last)
    for one in found[:-1]:
        end = datetime.fromisoformat(one["to"])
        assert datetime.fromisoformat(one["at"]) == end - timedelta(microseconds=1)
        block = (end - time_of(100) - timedelta(microseconds=1)) // timedelta(seconds=12) + 100
        if any(first <= block <= last for first, last in RANGES):
            count = sum(1 for balance in state_at(block).values() if balance)
            assert (one["holderCount"], one["holderCountStatus"], one["isComplete"]) == (count, "Counted", True)
        else:
            assert (one["holderCount"], one["holderCountStatus"], one["isComplete"]) == (None, "NotCovered", False)
    assert [one["holderCount"] for one in found].count(None) == 1
    now = sum(1 for balance in state_at(last).values() if balance)
    assert (found[-1]["holderCount"], found[-1]["isComplete"]) == (now, False)


@pytest.mark.ci
@pytest.mark.parametrize(("most", "interval"), [(8, "1w"), (5, "1M")])
def test_holders_of_a_long_view_are_counted_by_weeks_or_months(
    own: World, most: int, interval: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, newest = date(2026, 2, 1), time_of(NEWEST).date()
    with own.client() as client:
        by_day = client.get(f"{DATA}/summary", headers=cap_table(client)).json()["holdersOverTime"]
    monkeypatch.setattr("api.reports.cap_table.MOST_POINTS", most)
    with own.client() as client:
        report = client.get(f"{DATA}/summary", headers=cap_table(client)).json()
    counts = {one["at"]: (one["holderCount"], one["holderCountStatus"], one["isComplete"]) for one in by_day}
    days = (first + timedelta(days=number) for number in range((newest - first).days + 1))
    # Weeks end on Sunday.
    ends = [
        str(day)
        for day in days
        if day == newest
        or (day.isoweekday() == 7 if interval == "1w" else (day + timedelta(days=1)).month != day.month)
    ]
    assert report["holdersInterval"] == interval
    assert 1 < len(ends) <= most
    assert [one["at"][:10] for one in report["holdersOverTime"]] == ends
    for one in report["holdersOverTime"]:
        assert (one["holderCount"], one["holderCountStatus"], one["isComplete"]) == counts[one["at"]]


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.ci
@pytest.mark.parametrize(
    ("query", "as_of", "batch"),
    [
        ({}, None, 7),
        ({}, None, 5_000),
        ({}, f"block:{PAST}", 7),
        ({"sort": "-rank"}, None, 7),
        ({"sort": "-wallet", "q": "0x00"}, f"block:{PAST}", 7),
        ({"sort": "reconciliation"}, None, 7),
    ],
)
def test_a_file_has_all_rows(
    client: TestClient[Any], query: dict[str, str], as_of: str | None, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.http.calls.Services.column_rows", batch)
    headers = cap_table(client, as_of)
    expected = rows(client, headers, **query)
    token = headers["Authorization"].removeprefix("Bearer ")
    by_form = client.post(f"{DATA}/csv", data={"token": token, **query}, headers={"Authorization": "nobody's"})
    by_header = client.get(f"{DATA}/csv", params=query, headers=headers)
    assert by_form.status_code == by_header.status_code == 200
    assert by_form.text == by_header.text
    assert by_form.headers["content-type"].startswith("text/csv")
    block = NEWEST if as_of is None else PAST
    assert by_form.headers["content-disposition"] == f'attachment; filename="SMALL-cap-table-{block}.csv"'
    assert by_form.headers["cache-control"] == "no-store"
    shown = [
        {
            name: "" if value is None else f"'{value}" if name == "name" and value.startswith("=") else str(value)
            for name, value in row.items()
        }
        for row in expected
    ]
    assert read_csv(by_form.text) == shown


def test_csv_escapes_formulas_but_not_negative_numbers(client: TestClient[Any]) -> None:
    found = read_csv(client.get(f"{DATA}/csv", headers=cap_table(client)).text)
    assert any(row["name"] == "'=HYPERLINK(1)" for row in found)
    negative = [row["change30d"] for row in found if row["change30d"].startswith("-")]
    assert negative
    assert all(Fraction(number) < 0 for number in negative)


def test_pages_stay_in_the_requested_version(own: World) -> None:
    with own.client() as client:
        headers = cap_table(client)
        before = rows(client, headers, dataVersion=1)
        rest = reported_rows(own)
        token = own.subject_keys[EXAMPLE_TOKEN_ID]
        largest = max(
            (row for row in rest["token_holders"] if row["subject_key"] == token), key=lambda row: row["quantity_raw"]
        )
        rest["token_holders"].remove(largest)
        publish(own.settings.serving_dir, 2, rest)
        own.clock.look_again()
        assert client.get(f"{DATA}/rows", headers=headers).json()["dataVersion"] == 2
        assert rows(client, headers, dataVersion=1) == before
        first = client.get(f"{DATA}/rows", headers=headers).json()["data"][0]
        assert (first["rank"], first["wallet"]) == (1, before[1]["wallet"])
        (own.settings.serving_dir / "marts-000000000001.duckdb").unlink()
        for path in ("rows", "summary", "csv"):
            gone = client.get(f"{DATA}/{path}", params={"dataVersion": 1}, headers=headers)
            problem(gone, 410, "cursor-expired")


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ({"sort": "name"}, 422, "invalid-parameter"),
        ({"sort": "rank; drop table marts.cap_tables"}, 422, "invalid-parameter"),
        ({"limit": "201"}, 422, "invalid-parameter"),
        ({"limit": "0"}, 422, "invalid-parameter"),
        ({"offset": "-1"}, 422, "invalid-parameter"),
        ({"q": ""}, 422, "invalid-parameter"),
        ({"reconciliation": "Maybe"}, 422, "invalid-parameter"),
        ({"dataVersion": "one"}, 400, "malformed-parameter"),
        ({"tokenId": EXAMPLE_TOKEN_ID}, 400, "unknown-parameter"),
        ({"asOf": "block:1"}, 400, "unknown-parameter"),
        ({"dataVersion": "99"}, 410, "cursor-expired"),
    ],
)
def test_bad_parameters_are_refused(client: TestClient[Any], query: dict[str, str], status: int, code: str) -> None:
    answer = problem(client.get(f"{DATA}/rows", params=query, headers=cap_table(client)), status, code)
    assert next(iter(query)) in answer["detail"] or status == 410


def test_page_after_the_last_is_empty(client: TestClient[Any]) -> None:
    headers = cap_table(client)
    total = client.get(f"{DATA}/rows", headers=headers).json()["total"]
    for sort in ("rank", "-rank", "wallet", "-reconciliation"):
        page = client.get(f"{DATA}/rows", params={"offset": total, "sort": sort}, headers=headers).json()
        assert (page["data"], page["total"]) == ([], total)
        last = client.get(f"{DATA}/rows", params={"offset": total - 1, "sort": sort}, headers=headers).json()
        assert len(last["data"]) == 1


def test_data_is_compressed_if_the_client_accepts_it(client: TestClient[Any]) -> None:
    headers = cap_table(client)
    plain = client.get(f"{DATA}/summary", headers=headers | {"Accept-Encoding": "identity"})
    packed = client.get(f"{DATA}/summary", headers=headers | {"Accept-Encoding": "gzip"})
    assert ("content-encoding" in plain.headers, packed.headers["content-encoding"]) == (False, "gzip")
    assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"
    assert plain.json() == packed.json()
    assert int(packed.headers["content-length"]) < len(plain.content) / 3
    # Small responses are not compressed.
    assert "content-encoding" not in client.post("/embed/token", headers=headers).headers


def test_moment_in_a_gap_is_refused_with_its_covered_neighbours(client: TestClient[Any]) -> None:
    asked = {"tokenId": EXAMPLE_TOKEN_ID, "asOf": "block:63000"}
    headers = embed_unchecked(client, "cap-table", **asked)
    answers = [client.get(f"{DATA}/{path}", headers=headers) for path in ("summary", "rows", "csv")]
    # The request for a link is refused with the same message.
    for answer in [*answers, client.get("/v1/reports/cap-table", params=asked)]:
        answer = problem(answer, 409, "not-covered")
        assert [error["parameter"] for error in answer["errors"]] == ["asOf"]
        assert (answer["before"], answer["after"]) == (f"{time_of(60_000):%FT%TZ}", f"{time_of(66_000):%FT%TZ}")


def test_file_with_unknown_holders_is_not_complete(client: TestClient[Any]) -> None:
    told = client.get(f"{TOKEN}/cap-table", params={"asOf": "block:50000"}).json()
    assert (told["coverage"]["complete"], told["holdersStatus"]) == (True, "HoldersUnknown")
    saved = client.get(f"{DATA}/csv", headers=cap_table(client, "block:50000"))
    assert json.loads(saved.headers["x-coverage"]) == told["coverage"] | {"complete": False}


def test_token_without_collected_data_shows_the_reason(client: TestClient[Any]) -> None:
    headers = cap_table(client, token_id=FRESH_TOKEN_ID)
    report = client.get(f"{DATA}/summary", headers=headers).json()
    told = client.get(f"/v1/tokens/{FRESH_TOKEN_ID}/cap-table").json()
    assert (report["asOf"], report["coverage"]) == (told["asOf"], told["coverage"])
    assert report["coverage"]["gaps"][0]["reason"] == "NeverTracked"
    assert (report["holderCount"], report["holderCountStatus"]) == (None, "NotYetCollected")
    assert report["reconciliation"] == {
        "reconciled": None,
        "adjusted": None,
        "unchecked": None,
        "status": "NotYetCollected",
    }
    assert (report["largest"], report["curve"], report["holdersOverTime"]) == ([], [], [])
    assert rows(client, headers) == []
    saved = client.get(f"{DATA}/csv", headers=headers)
    assert saved.headers["content-disposition"] == 'attachment; filename="FRESH-cap-table-empty.csv"'
    assert read_csv(saved.text) == []


@pytest.mark.parametrize("token_id", [WIDE_TOKEN_ID, UNKNOWN_TOKEN_ID, BIG_TOKEN_ID])
def test_quantities_of_any_size_equal_those_of_the_api(client: TestClient[Any], token_id: str) -> None:
    headers = cap_table(client, token_id=token_id)
    told = walked(client, token=f"/v1/tokens/{token_id}")
    shown = rows(client, headers)
    assert [{name: row[name] for name in told[0]} for row in shown] == told
    curve = client.get(f"{DATA}/summary", headers=headers).json()["curve"]
    held = sum(int(row["quantityRaw"]) for row in told)
    assert curve[-1] == {"holders": len(told), "percentage": percentage_of(held, 2**256 - 1)}


def test_holder_shares_have_status_zero_supply_without_a_supply(own: World) -> None:
    changed = reported_rows(own)
    for row in changed["supply_changes"] + changed["tokens"]:
        if row["subject_key"] == own.subject_keys[EXAMPLE_TOKEN_ID]:
            row |= {"total_supply_raw": 0, "total_supply": "0"}
    publish(own.settings.serving_dir, 1, changed)
    with own.client() as client:
        report = client.get(f"{DATA}/summary", headers=cap_table(client)).json()
    assert (report["curve"], report["concentration"]["status"]) == ([], "ZeroSupply")
    assert {(one["percentage"], one["percentageStatus"]) for one in report["largest"]} == {(None, "ZeroSupply")}


def test_a_removed_token_has_no_report(own: World) -> None:
    with own.client() as client:
        headers = cap_table(client)
        assert client.delete(TOKEN).status_code == 204
        for path in ("summary", "rows", "csv"):
            problem(client.get(f"{DATA}/{path}", headers=headers), 404, "token-not-found")


def test_another_tenants_names_are_not_shown(own: World) -> None:
    with own.store.write() as session:
        treasury = session.query(Subject).filter_by(name="Treasury").one()
        theirs = session.query(Subject).filter_by(tenant_id=own.foreign_tenant_id, kind="wallet").one()
        treasury.removed_at = time_of(91)
        theirs.address, theirs.name, theirs.search_text = treasury.address, "Theirs", "theirs"
    with own.client() as client:
        headers = cap_table(client)
        assert rows(client, headers, q="theirs") == []
        assert rows(client, headers, q="treasury") == []
        (row,) = [row for row in rows(client, headers) if row["wallet"].lower() == holder(4)]
        assert (row["name"], row["walletId"]) == (None, None)


def test_index_lists_only_the_tenants_own_subjects(client: TestClient[Any]) -> None:
    index = client.get("/embed/data/index", headers=embed(client, "/v1/reports")).json()
    tokens = client.get("/v1/tokens").json()["data"]
    wallets = client.get("/v1/wallets").json()["data"]
    assert index["tenant"] == "acme"
    assert {one["id"] for one in index["tokens"]} == {one["id"] for one in tokens}
    assert {one["id"] for one in index["wallets"]} == {one["id"] for one in wallets}
    assert (index["tokenTotal"], index["walletTotal"]) == (len(tokens), len(wallets))
    for kind, told, extra in (("tokens", tokens, {"holderCount", "holderCountStatus"}), ("wallets", wallets, set())):
        by_id = {one["id"]: one for one in told}
        for one in index[kind]:
            assert {name: one[name] for name in one if name not in extra | {"network"}} == {
                name: by_id[one["id"]][name] for name in one if name not in extra | {"network"}
            }
    counts = {one["id"]: one["holderCount"] for one in index["tokens"]}
    assert counts[FRESH_TOKEN_ID] is None
    assert counts[EXAMPLE_TOKEN_ID] == sum(1 for balance in state_at(NEWEST).values() if balance)


def test_the_index_is_searched_and_paged(client: TestClient[Any]) -> None:
    headers = embed(client, "/v1/reports")
    everything = client.get("/embed/data/index", headers=headers).json()
    found: list[str] = []
    for offset in range(0, 6, 2):
        page = client.get("/embed/data/index", params={"limit": 2, "offset": offset}, headers=headers).json()
        found += [one["id"] for one in page["tokens"]]
    assert found == [one["id"] for one in everything["tokens"]][:6]
    treasury = client.get("/embed/data/index", params={"q": "TREASURY"}, headers=headers).json()
    assert ([one["name"] for one in treasury["wallets"]], treasury["tokens"]) == (["Treasury"], [])
    assert HOLDERS["h1"] in {one["ledgerId"] for one in everything["wallets"] if one["id"] == EXAMPLE_WALLET_ID}


@pytest.mark.parametrize("kind", ["token", "wallet"])
def test_index_is_sorted_and_has_totals(client: TestClient[Any], kind: str) -> None:
    headers = embed(client, "/v1/reports")
    everything = client.get("/embed/data/index", headers=headers).json()
    value, other = {
        "token": ("marketCapitalization", ("holders", "holderCount")),
        "wallet": ("totalValue", ("change", "change24h")),
    }[kind]
    for name, column in (("value", value), other):
        for sign in ("", "-"):
            query = {f"{kind}Sort": sign + name}
            found = client.get("/embed/data/index", params=query, headers=headers).json()[f"{kind}s"]
            known = [Decimal(one[column]) for one in found if one[column] is not None]
            assert known == sorted(known, reverse=sign == "-")
            assert [one[column] for one in found[len(known) :]] == [None] * (len(found) - len(known))
            # Equal rows stay in order of creation.
            pages = [
                client.get("/embed/data/index", params={**query, "limit": 1, "offset": at}, headers=headers).json()
                for at in range(len(found))
            ]
            assert [page[f"{kind}s"][0]["id"] for page in pages] == [one["id"] for one in found]
            assert sorted(one["id"] for one in found) == sorted(one["id"] for one in everything[f"{kind}s"])
    with localcontext(prec=200):
        total = sum((Decimal(one[value]) for one in everything[f"{kind}s"] if one[value] is not None), Decimal(0))
    assert Decimal(everything[f"{kind}Value"]) == total
    names = client.get("/embed/data/index", params={f"{kind}Sort": "name"}, headers=headers).json()[f"{kind}s"]
    called = [(one["name"] or one.get("symbol") or one["ledgerId"]).casefold() for one in names]
    assert called == sorted(called)


def test_index_is_filtered_by_tracking_status(client: TestClient[Any]) -> None:
    headers = embed(client, "/v1/reports")
    everything = client.get("/embed/data/index", headers=headers).json()
    for status in ("enabled", "disabled"):
        found = client.get("/embed/data/index", params={"trackingStatus": status}, headers=headers).json()
        for kind in ("tokens", "wallets"):
            assert found[kind] == [one for one in everything[kind] if one["trackingStatus"] == status]
            assert found[f"{kind[:-1]}Total"] == len(found[kind])


def test_slow_download_does_not_hold_its_table(own: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.http.calls.Services.column_rows", 3)
    users: list[set[int]] = []
    release = Snapshot.release

    def noted(self: Snapshot) -> None:
        release(self)
        users.append({table.users for table in self._version.tables._tables.values()})

    monkeypatch.setattr(Snapshot, "release", noted)
    with own.client() as client:
        file = client.get(f"{DATA}/csv", headers=cap_table(client)).text
    batches = (file.count("\n") - 1) // 3
    assert batches > 2
    # The start of the response, each batch, and the end.
    assert len(users) > batches
    assert all(found == {0} for found in users)
