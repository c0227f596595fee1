"""The report of cap table changes, compared with the same changes in the API."""

import csv
import io
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import jwt
import pytest
from litestar.testing import TestClient

from api.examples import EXAMPLE_TOKEN_ID
from api.reports.schemas.links import Report
from api.reports.tokens import SESSION
from control import service_secrets
from tests.api.reported import NEWEST, publish_reported
from tests.api.test_errors import problem
from tests.api.test_report_data import NAMES, NUMBERS, PAST, embed, embed_unchecked
from tests.api.test_reports import claims_of
from tests.api.world import World, copy_world, time_of

DATA = "/embed/data/cap-table-changes"
TOKEN = f"/v1/tokens/{EXAMPLE_TOKEN_ID}"
FROM = f"block:{PAST}"


@pytest.fixture(scope="module")
def client(template: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient[Any]]:
    """A client for read-only tests."""
    made = copy_world(template, tmp_path_factory.mktemp("changes"))
    publish_reported(made)
    with made.client() as client:
        yield client
    made.store.close()


def headers_of(client: TestClient[Any], start: str = FROM, end: str | None = None) -> dict[str, str]:
    moments = {"from": start} | ({} if end is None else {"to": end})
    return embed(client, "/v1/reports/cap-table-changes", tokenId=EXAMPLE_TOKEN_ID, **moments)


def walked(client: TestClient[Any], **query: str) -> list[dict[str, Any]]:
    """Return the API's rows of all pages."""
    asked = {"from": FROM, "limit": "50", **query}
    answer = client.get(f"{TOKEN}/cap-table/changes", params=asked).json()
    found = list(answer["data"])
    while answer["page"]["nextCursor"]:
        cursor = {"cursor": answer["page"]["nextCursor"]}
        answer = client.get(f"{TOKEN}/cap-table/changes", params=asked | cursor).json()
        found += answer["data"]
    return found


def rows(client: TestClient[Any], headers: dict[str, str], **query: Any) -> list[dict[str, Any]]:
    """Return the report's rows of all pages."""
    found: list[dict[str, Any]] = []
    total = None
    while total is None or len(found) < total:
        asked = {"limit": 37, "offset": len(found), **query}
        page = client.get(f"{DATA}/rows", params=asked, headers=headers).json()
        assert len(page["data"]) == min(37, page["total"] - len(found))
        total = page["total"]
        found += page["data"]
    return found


@pytest.mark.parametrize("end", [None, f"block:{PAST + 10_000}"])
def test_summary_equals_that_of_the_api(client: TestClient[Any], end: str | None) -> None:
    report = client.get(f"{DATA}/summary", headers=headers_of(client, end=end)).json()
    moments = {"from": FROM} | ({} if end is None else {"to": end})
    told = client.get(f"{TOKEN}/cap-table/changes", params=moments | {"limit": "10"}).json()
    assert {name: report[name] for name in ("from", "to", "coverage", "totals")} == {
        name: told[name] for name in ("from", "to", "coverage", "totals")
    }
    assert report["largest"] == told["data"]
    assert len(report["largest"]) == 10
    assert report["isCurrent"] == (end is None)
    assert report["to"]["blockNumber"] == (NEWEST if end is None else PAST + 10_000)
    assert report["token"]["id"] == EXAMPLE_TOKEN_ID


@pytest.mark.ci
@pytest.mark.parametrize("sort", ["-difference", "difference", "wallet", "-wallet"])
@pytest.mark.parametrize("change", [None, "New", "Gone", "Changed"])
def test_pages_and_file_have_the_rows_of_the_api(client: TestClient[Any], sort: str, change: str | None) -> None:
    query = {"sort": sort} | ({} if change is None else {"change": change})
    headers, expected = headers_of(client), walked(client, **query)
    assert rows(client, headers, **query) == expected
    totals = client.get(f"{DATA}/summary", headers=headers).json()["totals"]
    kinds = ["new", "gone", "changed"] if change is None else [change.lower()]
    assert len(expected) == sum(totals[kind] for kind in kinds)
    token = headers["Authorization"].removeprefix("Bearer ")
    for answer in (
        client.get(f"{DATA}/csv", params=query, headers=headers),
        client.post(f"{DATA}/csv", data={"token": token, **query}, headers={"Authorization": "nobody's"}),
    ):
        assert "changes" in answer.headers["content-disposition"]
        saved = list(csv.DictReader(io.StringIO(answer.text)))
        assert [row["wallet"] for row in saved] == [row["wallet"] for row in expected]
        assert [row["differenceRaw"] for row in saved] == [row["differenceRaw"] or "" for row in expected]


def test_batches_of_a_file_are_contiguous(client: TestClient[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    headers = headers_of(client)
    whole = client.get(f"{DATA}/csv", headers=headers).text
    monkeypatch.setattr("api.http.calls.Services.batch_rows", 7)
    assert client.get(f"{DATA}/csv", headers=headers).text == whole


def test_rows_are_searched_by_address_and_by_name(client: TestClient[Any]) -> None:
    headers, everybody = headers_of(client), walked(client)
    part = everybody[3]["wallet"][5:9]
    expected = [row for row in everybody if part.lower() in row["wallet"].lower()]
    assert 0 < len(expected) < len(everybody)
    assert rows(client, headers, q=part) == expected
    assert rows(client, headers, q=part.upper()) == expected
    named = [row for row in everybody if row["name"] is not None]
    assert [row["name"] for row in named] == [NAMES[NUMBERS[row["wallet"].lower()]] for row in named]
    for row in named[:2]:
        assert row in rows(client, headers, q=row["name"].upper())
    assert rows(client, headers, q="nobody is called so") == []
    both = [row for row in expected if row["change"] == "Changed"]
    assert rows(client, headers, q=part, change="Changed") == both


def test_uncovered_moment_is_refused(client: TestClient[Any]) -> None:
    asked = {"tokenId": EXAMPLE_TOKEN_ID, "from": "block:5"}
    headers = embed_unchecked(client, "cap-table-changes", **asked)
    for part in ("summary", "rows", "csv"):
        problem(client.get(f"{DATA}/{part}", headers=headers), 409, "not-covered")
    problem(client.get("/v1/reports/cap-table-changes", params=asked), 409, "not-covered")


def test_named_day_keeps_its_date_during_the_session(client: TestClient[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that is open over midnight keeps the moments of its summary."""
    now = time_of(NEWEST)
    headers = {}
    asked: list[tuple[Report, dict[str, str]]] = [
        ("cap-table", {"asOf": "yesterday"}),
        ("cap-table-changes", {"from": "yesterday"}),
    ]
    for report, moments in asked:
        token = embed_unchecked(client, report, tokenId=EXAMPLE_TOKEN_ID, **moments)["Authorization"]
        claims = claims_of(f"#t={token.removeprefix('Bearer ')}")
        with client.app.state.services.store.read() as session:
            secret = service_secrets.get(session, service_secrets.EMBED_SIGNING_KEY)
        opened = {"sxp": int((now + SESSION).timestamp())}
        headers[report] = {"Authorization": f"Bearer {jwt.encode(claims | opened, secret)}"}
    table = client.get("/embed/data/cap-table/summary", headers=headers["cap-table"]).json()
    changes = client.get(f"{DATA}/summary", headers=headers["cap-table-changes"]).json()
    # The end of the day before the session, which is long ago.
    end = f"{now - timedelta(days=1):%Y-%m-%d}T23:59:59.999999Z"
    assert table["asOf"]["at"] == changes["from"]["at"] == end


def test_moments_in_wrong_order_are_refused(client: TestClient[Any]) -> None:
    asked = {"tokenId": EXAMPLE_TOKEN_ID, "from": f"block:{PAST}", "to": f"block:{PAST - 1}"}
    headers = embed_unchecked(client, "cap-table-changes", **asked)
    page = client.get(f"{DATA}/summary", headers=headers)
    for answer in (page, client.get("/v1/reports/cap-table-changes", params=asked)):
        found = problem(answer, 422, "invalid-parameter")
        assert [error["parameter"] for error in found["errors"]] == ["to"]
