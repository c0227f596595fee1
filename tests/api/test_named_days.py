"""Days named relative to today, and moments before a token's creation."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from litestar.testing import TestClient

from api.examples import EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from api.http.parameters import INSTANT, read_moment
from tests.api.marts import publish
from tests.api.test_coverage import coverage_rows
from tests.api.test_errors import problem
from tests.api.test_report_data import embed
from tests.api.valued import valued_rows
from tests.api.world import World, marts_rows, time_of

TOKEN, WALLET = f"/v1/tokens/{EXAMPLE_TOKEN_ID}", f"/v1/wallets/{EXAMPLE_WALLET_ID}"
CAP_TABLE = f"{TOKEN}/cap-table"
NOW = datetime(2026, 2, 2, 0, 0, 1, tzinfo=UTC)
MIDNIGHT = NOW + timedelta(days=1)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """The current time of requests, which a test may change."""
    told = [NOW]
    for module in ("api.http.auth", "api.reports.calls"):
        monkeypatch.setattr(f"{module}.utc_now", lambda: told[0])
    return told


@pytest.fixture
def covered(valued: World) -> Iterator[TestClient[Any]]:
    """The API with a newest range that continues for three days after block 400 of 1 February."""
    rows = valued_rows(valued)
    keys = [valued.subject_keys[subject_id] for subject_id in (EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID)]
    rows["coverage"] = [row for row in rows["coverage"] if row["subject_key"] not in keys]
    for subject_id in (EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID):
        *older, newest = coverage_rows(
            valued, subject_id, [(100, 200, None), (201, 250, "NeverTracked"), (251, 400, None)]
        )
        rows["coverage"] += [*older, newest | {"to_time": datetime(2026, 2, 4)}]  # noqa: DTZ001 - as marts have it
    publish(valued.settings.serving_dir, 2, rows)
    with valued.client() as client:
        yield client


@pytest.mark.parametrize(
    ("now", "yesterday", "month_end"),
    [
        ("2026-03-01T00:00:00+00:00", "2026-02-28", "2026-02-28"),
        ("2026-02-28T23:59:59.999999+00:00", "2026-02-27", "2026-01-31"),
        ("2024-03-02T12:00:00+00:00", "2024-03-01", "2024-02-29"),
        ("2026-01-01T00:30:00+00:00", "2025-12-31", "2025-12-31"),
        # In UTC it is still the last day of the year.
        ("2026-01-01T00:30:00+02:00", "2025-12-30", "2025-11-30"),
    ],
)
def test_days_are_utc_days(now: str, yesterday: str, month_end: str) -> None:
    at = datetime.fromisoformat(now)
    for name, day in (("yesterday", yesterday), ("last-month-end", month_end)):
        named, written = read_moment(name, at), read_moment(day, at)
        assert named == written is not None
        assert named.end == datetime.combine(date.fromisoformat(day) + timedelta(days=1), datetime.min.time(), UTC)
    assert read_moment("today", at) is None


@pytest.mark.parametrize("path", [CAP_TABLE, f"{WALLET}/balances", f"{CAP_TABLE}/changes?from=block:260&to="])
@pytest.mark.usefixtures("clock")
def test_named_day_equals_its_date(covered: TestClient[Any], path: str) -> None:
    asked = path if path.endswith("=") else f"{path}?asOf="
    named, dated = (covered.get(f"{asked}{day}") for day in ("yesterday", "2026-02-01"))
    newest, plain = covered.get(f"{asked}today"), covered.get(path.removesuffix("&to="))
    assert (named.status_code, newest.status_code) == (200, 200)
    assert named.json() == dated.json() != newest.json()
    assert newest.json() == plain.json()


@pytest.mark.usefixtures("clock")
def test_uncovered_named_day_is_refused_with_its_date(covered: TestClient[Any]) -> None:
    refused = problem(covered.get(f"{CAP_TABLE}?asOf=last-month-end"), 409, "not-covered")
    assert "2026-01-31" in refused["detail"]


def test_newest_block_is_refused_as_earlier_moment(client: TestClient[Any]) -> None:
    refused = problem(client.get(f"{CAP_TABLE}/changes?from=today"), 422, "invalid-parameter")
    assert refused["errors"][0]["parameter"] == "from"


def test_next_link_keeps_the_day_after_midnight(covered: TestClient[Any], clock: list[datetime]) -> None:
    """The link has the resolved date; a cursor together with a name that now means another day is refused."""
    first = covered.get(f"{CAP_TABLE}?asOf=yesterday&limit=1")
    cursor, link = first.json()["page"]["nextCursor"], first.links["next"]["url"]
    assert "asOf=2026-02-01" in link
    assert covered.get(f"{CAP_TABLE}?asOf=yesterday&limit=1&cursor={cursor}").status_code == 200
    clock[0] = MIDNIGHT
    problem(covered.get(f"{CAP_TABLE}?asOf=yesterday&limit=1&cursor={cursor}"), 400, "bad-cursor")
    followed = covered.get(link).json()
    assert followed["asOf"] == first.json()["asOf"]
    assert followed["data"][0]["rank"] == 2


def test_file_of_yesterday_changes_at_midnight(covered: TestClient[Any], clock: list[datetime]) -> None:
    first = covered.get(f"{CAP_TABLE}?asOf=yesterday", headers={"Accept": "text/csv"})
    kept = {"Accept": "text/csv", "If-None-Match": first.headers["etag"]}
    assert covered.get(f"{CAP_TABLE}?asOf=yesterday", headers=kept).status_code == 304
    clock[0] = MIDNIGHT
    assert covered.get(f"{CAP_TABLE}?asOf=yesterday", headers=kept).status_code == 200


@pytest.fixture
def created(world: World) -> Iterator[TestClient[Any]]:
    """The API with a token created in block 90, where its history begins."""
    rows = marts_rows(world)
    key = world.subject_keys[EXAMPLE_TOKEN_ID]
    rows["coverage"] = [row for row in rows["coverage"] if row["subject_key"] != key]
    rows["coverage"] += coverage_rows(world, EXAMPLE_TOKEN_ID, [(1, 89, "NeverTracked"), (90, 400, None)])
    for row in rows["tokens"]:
        if row["subject_key"] == key:
            row["created_block_number"] = 90
    publish(world.settings.serving_dir, 2, rows)
    with world.client() as client:
        yield client


@pytest.mark.parametrize("moment", ["block:89", "block:0", time_of(90) - INSTANT, time_of(1), "2019-01-01"])
def test_token_has_no_holders_before_its_creation(created: TestClient[Any], moment: str | datetime) -> None:
    as_of = moment if isinstance(moment, str) else moment.isoformat().replace("+00:00", "Z")
    told = created.get(CAP_TABLE, params={"asOf": as_of}).json()
    assert told["asOfStatus"] == "BeforeCreation"
    assert (told["asOf"]["blockNumber"], told["asOf"]["at"]) == (None, None)
    assert (told["data"], told["holderCount"], told["holdersStatus"]) == ([], 0, "Complete")
    assert (told["totalSupply"], told["totalSupplyRaw"], told["totalSupplyStatus"]) == ("0", "0", "ZeroSupply")
    assert (told["unattributed"]["quantity"], told["concentration"]["status"]) == ("0", "ZeroSupply")
    assert told["coverage"] == {"complete": True, "from": None, "to": None, "gaps": []}
    file = created.get(CAP_TABLE, params={"asOf": as_of}, headers={"Accept": "text/csv"})
    assert len(file.text.splitlines()) == 1


@pytest.mark.ci
@pytest.mark.parametrize("moment", ["block:89", "2019-01-01"])
@pytest.mark.parametrize("end", ["block:150", "block:400"])
def test_changes_since_before_the_creation_list_all_holders(world: World, moment: str, end: str) -> None:
    """Each holder of the later cap table is new with its whole balance, also across a gap."""
    rows = marts_rows(world)
    for row in rows["tokens"]:
        row["created_block_number"] = 100
    publish(world.settings.serving_dir, 2, rows)
    with world.client() as client:
        moments = {"from": moment, "to": end}
        told = client.get(f"{CAP_TABLE}/changes", params=moments).json()
        table = client.get(CAP_TABLE, params={"asOf": end}).json()
        headers = embed(client, "/v1/reports/cap-table-changes", tokenId=EXAMPLE_TOKEN_ID, **moments)
        report = client.get("/embed/data/cap-table-changes/summary", headers=headers).json()
    assert (told["from"]["blockNumber"], told["from"]["at"], told["fromStatus"]) == (None, None, "BeforeCreation")
    assert (told["to"], told["toStatus"]) == (table["asOf"], "Covered")
    expected = {row["wallet"]: (row["quantity"], row["percentage"]) for row in table["data"]}
    assert len(expected) > 1
    assert {row["wallet"]: (row["difference"], row["percentageAfter"]) for row in told["data"]} == expected
    assert {(row["change"], row["quantityBefore"], row["quantityStatus"]) for row in told["data"]} == {
        ("New", "0", "Known")
    }
    assert {(row["percentageBefore"], row["percentageBeforeStatus"]) for row in told["data"]} == {(None, "ZeroSupply")}
    totals = told["totals"]
    assert (totals["holdersBefore"], totals["holdersAfter"], totals["new"]) == (0, len(expected), len(expected))
    assert (totals["supplyBefore"], totals["supplyBeforeStatus"]) == ("0", "ZeroSupply")
    assert totals["supplyAfter"] == table["totalSupply"]
    assert told["coverage"] == table["coverage"]
    assert (report["totals"], report["fromStatus"], report["from"]["blockNumber"]) == (totals, "BeforeCreation", None)


def test_changes_before_the_creation(created: TestClient[Any]) -> None:
    told = created.get(f"{CAP_TABLE}/changes?from=block:5&to=block:89").json()
    assert (told["data"], told["fromStatus"], told["toStatus"]) == ([], "BeforeCreation", "BeforeCreation")
    assert (told["totals"]["supplyBefore"], told["totals"]["supplyAfter"], told["totals"]["holdersAfter"]) == (
        "0",
        "0",
        0,
    )
    assert told["coverage"] == {"complete": True, "from": None, "to": None, "gaps": []}
    problem(created.get(f"{CAP_TABLE}/changes?from=block:100&to=block:89"), 422, "invalid-parameter")


def test_token_has_a_block_from_its_creation_on(created: TestClient[Any]) -> None:
    for moment in ("block:90", time_of(90).isoformat().replace("+00:00", "Z")):
        assert created.get(CAP_TABLE, params={"asOf": moment}).json()["asOfStatus"] == "Covered"


def test_token_has_a_block_before_its_creation_if_covered(world: World) -> None:
    rows = marts_rows(world)
    for row in rows["tokens"]:
        row["created_block_number"] = 120
    publish(world.settings.serving_dir, 2, rows)
    with world.client() as client:
        told = client.get(f"{CAP_TABLE}?asOf=block:110").json()
        assert (told["asOf"]["blockNumber"], told["asOfStatus"]) == (110, "Covered")
        assert client.get(f"{CAP_TABLE}?asOf=block:99").json()["asOfStatus"] == "BeforeCreation"


def test_moments_before_an_unknown_creation_are_not_covered(client: TestClient[Any]) -> None:
    problem(client.get(f"{CAP_TABLE}?asOf=block:50"), 409, "not-covered")
    problem(client.get(f"{CAP_TABLE}?asOf=2019-01-01"), 409, "not-covered")
