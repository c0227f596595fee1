"""The cap table in the browser, compared with the numbers of the JSON API."""

import csv
import io
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
from playwright.sync_api import Frame

from tests.api.marts import publish
from tests.api.world import text_of
from tests.browser.configured import DESK_ID, DESK_NAME, LUMEN_ID
from tests.browser.conftest import Servers, Visit
from tests.browser.published import market_rows, publish_market
from tests.browser.reading import Cell, Table, check_every_sort_and_page, decimal_or_none, walked
from tests.browser.visitor import Visitor
from tests.e2e.client import ApiClient

pytestmark = pytest.mark.ci

CAP_TABLE = f"/v1/tokens/{LUMEN_ID}/cap-table"
PAGE = 25
Holders = list[dict[str, Any]]


def opened(visitor: Visitor, servers: Servers, **parameters: str) -> tuple[Frame, Table]:
    frame = visitor.open(servers.portal.page("cap-table", tokenId=LUMEN_ID, **parameters))
    return frame, Table(visitor, frame)


@pytest.fixture(scope="module")
def client(servers: Servers) -> Iterator[ApiClient]:
    with servers.api.client("viewer") as client:
        yield client


@pytest.fixture(scope="module")
def holders(client: ApiClient) -> Holders:
    """All holders from the JSON API, by rank."""
    return walked(client.pages(CAP_TABLE, limit=200))


def shown(table: Table) -> list[tuple[Any, ...]]:
    return [
        (
            row["rank"].text,
            row["holder"].full,
            row["quantity"].number,
            row["share"].number,
            row["value"].number,
            row["check"].text,
        )
        for row in table.rows()
    ]


def true(rows: Holders) -> list[tuple[Any, ...]]:
    return [
        (
            str(row["rank"]),
            row["wallet"],
            Decimal(row["quantity"]),
            Decimal(row["percentage"]),
            decimal_or_none(row["value"]),
            row["reconciliation"],
        )
        for row in rows
    ]


SORTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "#": lambda row: row["rank"],
    "Holder": lambda row: row["wallet"].lower(),
    "Quantity": lambda row: -row["rank"],
    "Share": lambda row: -row["rank"],
    "Value": lambda row: -row["rank"],
}


def check_headline_numbers(frame: Frame, client: ApiClient, holders: Holders) -> None:
    """Check that each tile shows its figure from the JSON API."""
    head = client.get(CAP_TABLE, limit=1)
    token = client.get(f"/v1/tokens/{LUMEN_ID}")
    tiles = {
        tile.locator("dt").inner_text(): Cell(
            tile.locator("dd .number").inner_text(),
            tile.locator("dd .number").get_attribute("title"),
            None,
            None,
        )
        for tile in frame.locator("#kpis .kpi").all()
    }
    assert tiles["Total supply"].title == f"{int(head['totalSupply']):,} LMN"
    assert tiles["Holders"].number == head["holderCount"] == len(holders)
    assert tiles["Market value"].number == Decimal(token["marketCapitalization"])
    assert tiles["Top 10 holders"].number == Decimal(head["concentration"]["top10"])
    assert tiles["Nakamoto coefficient"].number == head["concentration"]["nakamoto"]
    # Figures that depend on unknown holders have no number, here and in the API.
    assert (head["concentration"]["gini"], head["concentration"]["hhi"]) == (None, None)
    assert tiles["Gini coefficient"].text == tiles["HHI"].text == "— Holders unknown"
    assert tiles["Holders"].text.startswith("≥")
    assert tiles["Top 10 holders"].text.startswith("≥")
    strip = frame.inner_text("#strip")
    assert f"Block {head['asOf']['blockNumber']:,}" in strip
    assert head["asOf"]["finality"] in strip
    assert "1 gap" in strip
    assert "price" in strip.lower()


def test_headline_numbers_and_every_sort_and_page(
    servers: Servers, visit: Visit, client: ApiClient, holders: Holders
) -> None:
    with visit() as visitor:
        frame, table = opened(visitor, servers)
        check_headline_numbers(frame, client, holders)
        assert shown(table) == true(holders[:PAGE])
        assert table.range() == f"1-25 of {len(holders)} holders"
        check_every_sort_and_page(table, SORTS, holders, PAGE, shown, true)


@pytest.mark.release
def test_sort_by_reconciliation(servers: Servers, visit: Visit, holders: Holders) -> None:
    with visit() as visitor:
        _, table = opened(visitor, servers)
        for _ in range(2):
            direction = table.sort("Reconciliation")
            table.choose("#page-size", "200")
            words = [cell.text for cell in table.column("check")]
            table.turn("next")
            words += [cell.text for cell in table.column("check")]
            table.turn("next")
            words += [cell.text for cell in table.column("check")]
            assert words == sorted((row["reconciliation"] for row in holders), reverse=direction == "descending")
            table.choose("#page-size", "25")


def test_filter(servers: Servers, visit: Visit, holders: Holders) -> None:
    with visit() as visitor:
        _, table = opened(visitor, servers)
        for state in ("Reconciled", "Adjusted", "Unchecked"):
            matching = [row for row in holders if row["reconciliation"] == state]
            table.choose("#filter-reconciliation", state)
            assert shown(table) == true(matching[:PAGE]), state
            assert table.range().endswith(f"of {len(matching)} holders"), state


def test_search(servers: Servers, visit: Visit, holders: Holders) -> None:
    part = holders[40]["wallet"].lower()[5:9]
    matching = [row for row in holders if part in row["wallet"].lower()]
    with visit() as visitor:
        frame, table = opened(visitor, servers)
        table.search(part.upper())
        assert shown(table) == true(matching[:PAGE])
        table.search("EXCHANGE <I>")
        assert [row["holder"].name for row in table.rows()] == [DESK_NAME]
        # Special characters match only as text in an address or a name.
        for text in ("nobody", "' or 1=1 --", "%", "_", "\\"):
            table.search(text)
            assert table.range() == "0 holders", text
            assert "No holders match" in frame.inner_text("#table-body")


def test_download_has_the_filtered_rows_in_the_sort_order(servers: Servers, visit: Visit, holders: Holders) -> None:
    expected = [row for row in holders if row["reconciliation"] == "Adjusted"]
    with visit() as visitor:
        _, table = opened(visitor, servers)
        table.choose("#filter-reconciliation", "Adjusted")
        table.sort("Holder")
        lines = list(csv.DictReader(io.StringIO(table.download())))
    numbers = ("rank", "quantity", "quantityRaw", "percentage", "value", "checkedBlockNumber")
    ordered = sorted(expected, key=lambda row: row["wallet"].lower())
    assert [[line["wallet"], line["reconciliation"], *(line[name] for name in numbers)] for line in lines] == [
        [row["wallet"], row["reconciliation"], *(str(row[name]) for name in numbers)] for row in ordered
    ]


def test_banner_of_missing_holders_offers_no_request(own_servers: Servers, visit: Visit) -> None:
    """It appears if holders may be missing; with complete holders there are figures and no banner."""
    world = own_servers.world
    with visit() as visitor:
        frame, _ = opened(visitor, own_servers)
        banner = frame.locator("#incomplete")
        with own_servers.api.client() as client:
            share = client.get(CAP_TABLE, limit=1)["unattributed"]["percentage"]
        assert f"{round(Decimal(share), 2)}%" in banner.inner_text()
        assert frame.locator("#content > *").first.get_attribute("id") == "incomplete"
        assert (
            "POST" not in banner.inner_text()
        )  # the report is for readers; the owner's index of reports has the request
        assert "Complete" not in frame.inner_text("#strip")
        assert visitor.axe(frame) == []
        visitor.screenshot("cap-table-holders-unknown")
    rows = market_rows(world)
    token = world.subject_keys[LUMEN_ID]
    held = sum(row["quantity_raw"] for row in rows["token_holders"] if row["subject_key"] == token)
    for row in rows["tokens"] + rows["supply_changes"]:
        if row["subject_key"] == token:
            row |= {"total_supply_raw": held, "total_supply": text_of(held, 18)}
    for row in rows["supply_changes"]:
        if row["subject_key"] == token:
            row["opened_by"] = "Creation"
    publish(world.settings.serving_dir, 2, rows)
    with visit() as visitor:
        frame, table = opened(visitor, own_servers)
        assert frame.locator("#incomplete").is_hidden()
        # Quantities have equal decimals, and reconciliation is marked only where it differs from most rows.
        assert all(re.fullmatch(r"[+\N{MINUS SIGN}]?[\d,]+\.\d\d", cell.text) for cell in table.column("change"))
        assert set(frame.locator("#table-body .badge").all_inner_texts()) == {"Adjusted", "Unchecked"}
        tops = frame.evaluate(
            "() => ['.number', '.kpi .sub'].map((part) => new Set("
            "[...document.querySelectorAll(`#kpis ${part}`)].map((one) => one.getBoundingClientRect().top)).size)"
        )
        assert tops == [1, 1]
        assert "unconcentrated" in frame.inner_text("#kpis")
        assert "Holders unknown" not in frame.inner_text("#kpis")
        assert "≥" not in frame.inner_text("#kpis")
        visitor.screenshot("cap-table-holders-complete")


def test_cap_table_of_a_past_moment(servers: Servers, visit: Visit, client: ApiClient) -> None:
    then = walked(client.pages(CAP_TABLE, limit=200, asOf="2026-05-01"))
    head = client.get(CAP_TABLE, limit=1, asOf="2026-05-01")
    with visit() as visitor:
        frame, table = opened(visitor, servers, asOf="2026-05-01")
        assert shown(table) == true(then[:PAGE])
        assert table.range() == f"1-25 of {len(then)} holders"
        assert f"Block {head['asOf']['blockNumber']:,}" in frame.inner_text("#strip")
        assert "Past moment" in frame.inner_text("#moment")
        ordered = sorted(then, key=lambda row: row["wallet"].lower())
        table.sort("Holder")
        assert shown(table) == true(ordered[:PAGE])
        visitor.screenshot("cap-table-as-of")


def test_moment_before_the_creation_has_no_holders(own_servers: Servers, visit: Visit) -> None:
    world = own_servers.world
    rows = market_rows(world)
    for row in rows["tokens"]:
        if row["subject_key"] == world.subject_keys[LUMEN_ID]:
            row["created_block_number"] = 100
    publish(world.settings.serving_dir, 2, rows)
    with visit() as visitor:
        frame = visitor.open(own_servers.portal.page("cap-table", tokenId=LUMEN_ID, asOf="2026-01-01"), "empty")
        assert "Nobody held it yet" in frame.inner_text("#nothing")
        assert "Past moment" in frame.inner_text("#moment")
        assert "Before the token's creation" in frame.inner_text("#strip")
        assert "not" not in frame.inner_text("#strip").lower().replace("nothing to compare", "")
        assert frame.locator("#incomplete").is_hidden()
        visitor.screenshot("cap-table-before-creation")


def test_uncovered_moment_shows_its_covered_neighbours(servers: Servers, visit: Visit) -> None:
    with visit() as visitor:
        link = servers.api.link_unchecked("cap-table", tokenId=LUMEN_ID, asOf="2026-06-03")
        frame = visitor.open(servers.portal.page("framed", url=link), "empty")
        assert "Nearest collected moments" in frame.inner_text("#panel")
        visitor.screenshot("state-not-covered")
        visitor.forgive("status of 409")


def test_addresses_and_the_block_link_to_the_explorer(
    servers: Servers, visit: Visit, client: ApiClient, holders: Holders
) -> None:
    as_of = client.get(CAP_TABLE, limit=1)["asOf"]
    explorer = "https://explorer.example"
    with visit() as visitor:
        frame, _ = opened(visitor, servers)
        links = frame.locator("#table-body a.out").all()
        assert [link.get_attribute("href") for link in links] == [
            f"{explorer}/address/{row['wallet']}" for row in holders[:PAGE]
        ]
        assert {(link.get_attribute("target"), link.get_attribute("rel")) for link in links} == {
            ("_blank", "noopener noreferrer")
        }
        block = frame.locator("#strip a.out").get_attribute("href")
        assert block == f"{explorer}/block/{as_of['blockHash']}"


def test_new_version_while_the_report_is_open(own_servers: Servers, visit: Visit) -> None:
    """Pages stay in the version of the summary until it is removed; then everything is reloaded."""
    world, folder = own_servers.world, own_servers.world.settings.serving_dir
    with visit() as visitor:
        frame, table = opened(visitor, own_servers)
        publish_market(world, 2, without_smallest=True)
        table.turn("last")
        assert table.range().endswith("of 430 holders")
        (folder / "marts-000000000001.duckdb").unlink()
        publish_market(world, 3, without_smallest=True)
        with visitor.page.expect_response(lambda response: "/summary" in response.url):
            frame.click("#page-first")
        visitor.report()
        frame.wait_for_function("() => document.getElementById('page-range').textContent.includes('429')")
        assert table.range() == "1-25 of 429 holders"
        assert frame.locator("#notice").is_hidden()
        visitor.forgive("status of 410")


def test_token_without_collected_data_shows_an_empty_state(servers: Servers, visit: Visit) -> None:
    with servers.api.client() as client:
        fresh = next(row for row in walked(client.pages("/v1/tokens")) if row["symbol"] == "FRESH")
    with visit() as visitor:
        frame = visitor.open(servers.portal.page("cap-table", tokenId=fresh["id"]), "empty")
        assert "No holders to show yet" in frame.inner_text("#nothing")
        assert visitor.axe(frame) == []
        visitor.screenshot("state-empty")


def test_deleted_token_shows_an_error(own_servers: Servers, visit: Visit) -> None:
    with visit() as visitor, own_servers.api.client() as client:
        frame, table = opened(visitor, own_servers)
        client.delete(f"/v1/wallets/{DESK_ID}")
        client.delete(f"/v1/tokens/{LUMEN_ID}")
        table.head("Holder").get_by_role("button").click()
        visitor.report("error")
        assert "no such report" in frame.inner_text("body")
        visitor.forgive("status of 404")
