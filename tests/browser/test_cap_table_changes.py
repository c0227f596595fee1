"""The report of changes between two cap tables in the browser, compared with plain arithmetic and the JSON API."""

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from playwright.sync_api import Frame

from tests.browser.configured import LUMEN_ID, LUMEN_NAME
from tests.browser.conftest import Servers, Visit
from tests.browser.market import LUMEN, Market
from tests.browser.published import publish_departure
from tests.browser.reading import Cell, Table, check_every_sort_and_page, decimal_or_none, walked
from tests.browser.visitor import Visitor
from tests.e2e.client import ApiClient

pytestmark = pytest.mark.ci

CHANGES = f"/v1/tokens/{LUMEN_ID}/cap-table/changes"
MOMENTS = {"from": "2026-04-30", "to": "2026-10-31"}  # one range each
PAGE = 25
Changes = list[dict[str, Any]]


def opened(visitor: Visitor, servers: Servers, **moments: str) -> tuple[Frame, Table]:
    frame = visitor.open(servers.portal.page("cap-table-changes", tokenId=LUMEN_ID, **(moments or MOMENTS)))
    return frame, Table(visitor, frame)


@pytest.fixture(scope="module")
def client(servers: Servers) -> Iterator[ApiClient]:
    with servers.api.client("viewer") as client:
        yield client


@pytest.fixture(scope="module")
def head(client: ApiClient) -> dict[str, Any]:
    """Numbers of both cap tables from the JSON API."""
    return client.get(CHANGES, limit=1, **MOMENTS)


@pytest.fixture(scope="module")
def changes(client: ApiClient) -> Changes:
    """All changed holders from the JSON API, largest difference first."""
    return walked(client.pages(CHANGES, limit=200, **MOMENTS))


def shown(table: Table) -> list[tuple[Any, ...]]:
    return [
        (
            row["holder"].full,
            row["kind"].text,
            row["before"].number,
            row["after"].number,
            row["difference"].number,
            row["shares"].text,
        )
        for row in table.rows()
    ]


def true(rows: Changes) -> list[tuple[Any, ...]]:
    return [
        (
            row["wallet"],
            row["change"],
            *(decimal_or_none(row[name]) for name in ("quantityBefore", "quantityAfter", "difference")),
            f"{percent(row['percentageBefore'])}→{percent(row['percentageAfter'])}",
        )
        for row in rows
    ]


def percent(text: str) -> str:
    rounded = round(Decimal(text), 2)
    return "<0.01%" if not rounded and Decimal(text) else f"{rounded:.2f}%"


def tiles_of(frame: Frame) -> dict[str, tuple[Cell, str]]:
    """Return the headline numbers by label, each with the text below."""
    return {
        tile.locator("dt").inner_text(): (
            Cell(
                tile.locator("dd .number").inner_text(),
                tile.locator("dd .number").get_attribute("title"),
                None,
                None,
            ),
            tile.locator("dd .sub").inner_text(),
        )
        for tile in frame.locator("#kpis .kpi").all()
    }


def check_headline_numbers(frame: Frame, head: dict[str, Any]) -> None:
    """Check that each tile shows its figure from the JSON API."""
    totals = head["totals"]
    tiles = tiles_of(frame)
    holders, below = tiles["Holders after"]
    assert holders.number == totals["holdersAfter"]
    assert below == f"{totals['holdersBefore']} before · +{totals['holdersAfter'] - totals['holdersBefore']}"
    for label in ("New", "Gone", "Changed"):
        assert tiles[label][0].number == totals[label.lower()], label
    supply, below = tiles["Total supply after (LMN)"]
    assert supply.number == Decimal(totals["supplyAfter"])
    assert below == "100M before · unchanged"
    strip, moment = frame.inner_text("#strip"), frame.inner_text("#moment")
    for name in ("from", "to"):
        assert f"Block {head[name]['blockNumber']:,}" in strip
        assert head[name]["finality"] in strip
        assert f"{head[name]['blockNumber']:,}" in moment
    assert "1 gap" in strip
    assert "Apr 30, 2026 → Oct 31, 2026" in moment
    assert "Past moment" in moment
    links = [link.get_attribute("href") for link in frame.locator("#strip a.out").all()]
    assert links == [f"https://explorer.example/block/{head[name]['blockHash']}" for name in ("from", "to")]


def test_headline_numbers_and_rows_equal_the_movements(servers: Servers, visit: Visit, head: dict[str, Any]) -> None:
    """Expected rows come from the moves, in plain integers."""
    market = Market()
    before, after = (market.balances_before(head[name]["blockNumber"] + 1) for name in ("from", "to"))
    held = {holder: (before[LUMEN, holder], after[LUMEN, holder]) for holder in market.holders}
    expected = {
        holder: (Decimal(was) / 10**18, Decimal(has) / 10**18, "Changed" if was and has else "New" if has else "Gone")
        for holder, (was, has) in held.items()
        if was != has
    }
    with visit() as visitor:
        frame, table = opened(visitor, servers)
        check_headline_numbers(frame, head)
        table.choose("#page-size", "200")
        rows = table.rows()
        assert {
            str(row["holder"].full).lower(): (row["before"].number, row["after"].number, row["kind"].text)
            for row in rows
        } == expected
        differences = {str(row["holder"].full).lower(): row["difference"].number or Decimal(0) for row in rows}
        assert differences == {holder: has - was for holder, (was, has, _) in expected.items()}
        sizes = [abs(difference) for difference in differences.values()]
        assert sizes == sorted(sizes, reverse=True)
        assert frame.evaluate("document.title") == f"{LUMEN_NAME} cap table changes"


SORTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "Holder": lambda row: row["wallet"].lower(),
    "Difference": lambda row: abs(Decimal(row["difference"])),
}


@pytest.mark.release
def test_every_sort_and_page(servers: Servers, visit: Visit, changes: Changes) -> None:
    with visit() as visitor:
        _, table = opened(visitor, servers)
        assert shown(table) == true(changes[:PAGE])
        assert table.range() == f"1-25 of {len(changes)} holders"
        assert table.head("Difference").get_attribute("aria-sort") == "descending"
        check_every_sort_and_page(table, SORTS, changes, PAGE, shown, true)


def test_filter(servers: Servers, visit: Visit, changes: Changes) -> None:
    with visit() as visitor:
        frame, table = opened(visitor, servers)
        for kind in ("New", "Changed", "Gone"):
            matching = [row for row in changes if row["change"] == kind]
            table.choose("#filter-change", kind)
            if matching:
                assert shown(table) == true(matching[:PAGE]), kind
            else:
                assert "No holders match" in frame.inner_text("#table-body")
            assert table.range().endswith(f"{len(matching)} holders"), kind
        table.choose("#filter-change", "All changes")
        assert table.range() == f"1-25 of {len(changes)} holders"


def test_the_newest_block_is_the_later_moment_by_default(servers: Servers, visit: Visit, client: ApiClient) -> None:
    newest = client.get(CHANGES, limit=1, **{"from": "2026-09-30"})["to"]
    with visit() as visitor:
        frame, _ = opened(visitor, servers, **{"from": "2026-09-30"})
        assert f"Block {newest['blockNumber']:,}" in frame.inner_text("#strip")
        assert "Latest" in frame.inner_text("#moment")
        assert frame.locator("#incomplete").is_hidden()


def test_gap_between_the_moments_is_not_an_error(servers: Servers, visit: Visit) -> None:
    with visit() as visitor:
        frame, _ = opened(visitor, servers)
        banner = frame.locator("#incomplete")
        assert "the totals are right" in banner.inner_text()
        assert frame.locator("#content > *").first.get_attribute("id") == "incomplete"
        box = banner.bounding_box()
        assert box
        assert box["height"] < 70


# Of each row: length of its bar as a share of half the width, side of the middle, and the difference.
_BARS = """() => [...document.querySelectorAll('#table-body td.difference')].map((cell) => {
  const room = cell.querySelector('.diverging').getBoundingClientRect();
  const bar = cell.querySelector('.bar i').getBoundingClientRect();
  const middle = room.left + room.width / 2;
  return {
    length: bar.width / (room.width / 2),
    start: Math.min(Math.abs(bar.left - middle), Math.abs(bar.right - middle)),
    isRight: bar.left + bar.width / 2 > middle,
    isCut: cell.querySelector('.bar').classList.contains('cut'),
  };
})"""


def test_bars_follow_sign_and_size_of_differences(servers: Servers, visit: Visit, changes: Changes) -> None:
    sizes = [abs(Fraction(row["difference"])) for row in changes[:PAGE]]
    assert sizes[0] > 2 * sizes[1], "the largest difference would make dots of all others"
    with visit() as visitor:
        frame, _ = opened(visitor, servers)
        for row, size, bar in zip(changes, sizes, frame.evaluate(_BARS), strict=False):
            assert bar["isRight"] is not row["difference"].startswith("-")
            assert bar["start"] < 0.5
            assert bar["length"] == pytest.approx(min(1, float(size / (2 * sizes[1]))), abs=0.04)
            assert bar["isCut"] is (size == sizes[0])
        hint = frame.locator("#table-head th", has_text="Difference").get_attribute("title")
        assert hint is not None
        assert "cut" in hint


@pytest.mark.release
def test_gone_holder_and_holder_unseen_in_the_first_range(own_servers: Servers, visit: Visit) -> None:
    gone, unseen = publish_departure(own_servers.world, 2)
    with visit() as visitor, own_servers.api.client() as client:
        frame, table = opened(visitor, own_servers, **{"from": "2026-04-30"})
        totals = client.get(CHANGES, limit=1, **{"from": "2026-04-30"})["totals"]
        assert tiles_of(frame)["Gone"][0].number == totals["gone"] == 1
        table.choose("#filter-change", "Gone")
        (row,) = table.rows()
        assert str(row["holder"].full).lower() == gone
        assert row["after"].number == 0
        assert row["difference"].number == -(row["before"].number or 0)
        assert frame.locator("#table-body .badge").all_inner_texts() == ["Gone"]
        table.choose("#filter-change", "All changes")
        table.search(unseen)
        (row,) = table.rows()
        assert row["before"].text == row["difference"].text == "— Unknown before"
        assert row["shares"].text.startswith("— Unknown before→")
        assert row["after"].number
        assert visitor.axe(frame) == []
        visitor.screenshot("cap-table-changes-unknown")


def test_print_has_all_rows(servers: Servers, visit: Visit, changes: Changes, head: dict[str, Any]) -> None:
    with visit() as visitor, servers.api.client() as client:
        link = client.get("/v1/reports/cap-table-changes", tokenId=LUMEN_ID, **MOMENTS)["reportUrl"]
        frame = visitor.open(link.replace("#", "&rows=all#"))
        visitor.page.emulate_media(media="print")
        printed = frame.evaluate(
            "() => [...document.querySelectorAll('.responsive tbody tr')].filter((row) => row.offsetParent)"
            ".map((row) => row.querySelector('[data-full]').dataset.full)"
        )
        assert printed == [row["wallet"] for row in changes]
        assert frame.locator("#table-paper .bar:visible").count() == 0
        assert all(
            frame.locator("#table-paper tr").first.locator(f".{part}").is_visible() for part in ("before", "shares")
        )
        sheet = frame.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--sheet-moment')")
        told = re.sub(r"\\([0-9a-f]+) ", lambda code: chr(int(code[1], 16)), sheet)
        assert [name in line for name, line in zip(("From", "To"), told.split("\n"), strict=True)] == [True, True]
        for name in ("from", "to"):
            assert f"block {head[name]['blockNumber']:,}" in told
            assert head[name]["blockHash"] in told
        visitor.screenshot("cap-table-changes-paper")


def test_equal_cap_tables_show_an_empty_state(servers: Servers, visit: Visit) -> None:
    with visit() as visitor:
        frame, _ = opened(visitor, servers, **{"from": "2026-10-31", "to": "2026-10-31"})
        assert "No holder changed between these dates" in frame.inner_text("#nothing")
        assert frame.locator("#rows").is_hidden()
        assert tiles_of(frame)["Holders after"][1].endswith("unchanged")
        assert visitor.axe(frame) == []
        visitor.screenshot("cap-table-changes-nothing")


@pytest.mark.parametrize(
    ("moments", "which"),
    [
        ({"from": "2026-06-03"}, "to the earlier of the two"),
        ({"from": "2026-04-30", "to": "2026-06-03"}, "to the later of the two"),
    ],
)
def test_uncovered_moment_shows_its_covered_neighbours(
    servers: Servers, visit: Visit, moments: dict[str, str], which: str
) -> None:
    with visit() as visitor:
        link = servers.api.link_unchecked("cap-table-changes", tokenId=LUMEN_ID, **moments)
        frame = visitor.open(servers.portal.page("framed", url=link), "empty")
        assert f"Nearest collected moments {which}" in frame.inner_text("#panel")
        visitor.screenshot("state-changes-not-covered")
        visitor.forgive("status of 409")
