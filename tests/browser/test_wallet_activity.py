"""The wallet report in the browser, compared with the numbers of the JSON API."""

import csv
import io
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
from playwright.sync_api import Frame

from tests.api.marts import publish
from tests.browser.configured import DESK_NAME, TREASURY_ID, TREASURY_NAME
from tests.browser.conftest import Servers, Visit
from tests.browser.market import DESK, SPAM_SYMBOL
from tests.browser.published import market_rows, publish_folded_fees
from tests.browser.reading import Table, parsed, walked
from tests.browser.visitor import Visitor
from tests.e2e.client import ApiClient

pytestmark = pytest.mark.ci

WALLET = f"/v1/wallets/{TREASURY_ID}"
PAGE = 25
Activities = list[dict[str, Any]]


def opened(visitor: Visitor, servers: Servers, **parameters: str) -> tuple[Frame, Table]:
    frame = visitor.open(servers.portal.page("wallet-activity", walletId=TREASURY_ID, **parameters))
    return frame, Table(visitor, frame)


@pytest.fixture(scope="module")
def client(servers: Servers) -> Iterator[ApiClient]:
    with servers.api.client("viewer") as client:
        yield client


@pytest.fixture(scope="module")
def activities(client: ApiClient) -> Activities:
    """All activities from the JSON API, newest first."""
    return walked(client.pages(f"{WALLET}/activities", limit=200))


def effect(row: dict[str, Any], name: str) -> Decimal | None:
    """Return a quantity or value with the sign of its direction."""
    if row[name] is None:
        return None
    return -Decimal(row[name]) if row["direction"] == "Out" else Decimal(row[name])


def shown(table: Table) -> list[tuple[Any, ...]]:
    return [
        (
            row["transaction"].full,
            row["token"].name,
            row["quantity"].number,
            row["value"].number,
            row["counterparty"].full,
        )
        for row in table.rows()
    ]


def true(rows: Activities) -> list[tuple[Any, ...]]:
    return [
        (
            row["transactionHash"],
            row["token"]["symbol"],
            effect(row, "amount"),
            effect(row, "value"),
            row["counterparty"],
        )
        for row in rows
    ]


def check_headline_numbers(frame: Frame, client: ApiClient, activities: Activities) -> None:
    """Check that each tile and each holding shows its figure from the JSON API."""
    wallet, balances = client.get(WALLET), client.get(f"{WALLET}/balances")
    tiles = {tile.locator("dt").inner_text(): tile.locator("dd .number") for tile in frame.locator(".kpi").all()}
    titles = {name: tile.get_attribute("title") or tile.inner_text() for name, tile in tiles.items()}
    assert parsed(titles["Wallet value"]) == Decimal(wallet["totalValue"])
    assert parsed(titles["Activities"]) == len(activities)
    others = {row["counterparty"] for row in activities if row["counterparty"] not in (None, wallet["ledgerId"])}
    assert parsed(titles["Counterparties"]) == len(others)
    moved = [effect(row, "value") for row in activities if row["direction"] is not None]
    net = sum((value for value in moved if value is not None), Decimal(0))
    assert parsed(next(title for name, title in titles.items() if name.startswith("Net flow"))) == net
    held = {
        row.locator("bdi.name").inner_text(): [
            cell.locator("[title]:not(.missing)").first.get_attribute("title")
            if cell.locator("[title]:not(.missing)").count()
            else None
            for cell in row.locator("td.right").all()
        ]
        for row in frame.locator("#balances-body tr").all()
    }
    for position in balances["current"]:
        quantity, price, value, share, _ = held[position["token"]["symbol"]]
        assert parsed(quantity or "") == Decimal(position["quantity"])
        assert (None if value is None else parsed(value)) == (
            None if position["value"] is None else Decimal(position["value"])
        )
        assert (None if price is None else parsed(price)) == (
            None if position["price"] is None else Decimal(position["price"])
        )
        if position["value"] is None:
            assert share is None
        else:
            part = 100 * Decimal(position["value"]) / Decimal(wallet["totalValue"])
            assert abs(parsed((share or "").removesuffix(" %")) - part) <= Decimal("0.0001")
    assert len(held) == len(balances["current"])
    assert shortened_symbol() in frame.inner_text("#balances-note")


def test_headline_numbers_and_rows_and_pages(
    servers: Servers, visit: Visit, client: ApiClient, activities: Activities
) -> None:
    with visit() as visitor:
        frame, table = opened(visitor, servers)
        check_headline_numbers(frame, client, activities)
        # Missing history is shown first.
        assert frame.locator("#content > *").first.get_attribute("id") == "incomplete"
        assert "Jun 1, 2026 \N{EN DASH} Jun 5, 2026" in frame.inner_text("#incomplete")
        assert table.head("Time").get_attribute("aria-sort") == "descending"
        assert shown(table) == true(activities[:PAGE])
        assert table.range() == f"1-25 of {len(activities)} activities"
        table.turn("next")
        assert shown(table) == true(activities[PAGE : 2 * PAGE])
        table.turn("last")
        assert shown(table) == true(activities[len(activities) // PAGE * PAGE :])
        table.turn("previous")
        table.turn("first")
        assert shown(table) == true(activities[:PAGE])
        assert table.sort("Time") == "ascending"
        assert shown(table) == true(activities[::-1][:PAGE])


WORDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "Type": lambda row: row["type"],
    "Token": lambda row: (row["token"]["symbol"] or row["token"]["ledgerId"]).casefold(),
    "Quantity": lambda row: Decimal(row["amount"]),
    "Value": lambda row: None if row["value"] is None else Decimal(row["value"]),
    "Counterparty": lambda row: None if row["counterparty"] is None else row["counterparty"].lower(),
}


@pytest.mark.release
def test_every_sort(servers: Servers, visit: Visit, activities: Activities) -> None:
    """Every activity appears once, in order; rows without a value come last in both directions."""
    by_hash = {(row["transactionHash"], row["type"]): row for row in activities}
    assert len(by_hash) == len(activities)
    with visit() as visitor:
        frame, table = opened(visitor, servers)

        def page() -> Activities:
            return [by_hash[row["transaction"].full or "", kind_of(row["type"].text)] for row in table.rows()]

        table.choose("#page-size", "200")
        for label, key in WORDS.items():
            known = sorted(key(row) for row in activities if key(row) is not None)
            unknown = [None] * (len(activities) - len(known))
            directions = set()
            for _ in range(2):
                direction = table.sort(label)
                directions.add(direction)
                ordered = [*(known if direction == "ascending" else known[::-1]), *unknown]
                assert [key(row) for row in page()] == ordered[:200], (label, direction)
                table.turn("last")
                assert [key(row) for row in page()] == ordered[len(ordered) // 200 * 200 :], (label, direction)
            assert directions == {"ascending", "descending"}
        table.turn("first")
        rows = page()
        while not frame.is_disabled("#page-next"):
            table.turn("next")
            rows += page()
        assert sorted(map(id, rows)) == sorted(map(id, activities))


def kind_of(text: str) -> str:
    return next(kind for word, kind in KINDS.items() if text.startswith(word))


KINDS = {"Transfer in": "TransferIn", "Transfer out": "TransferOut", "To itself": "Self", "Fee": "Fee"}


def test_filters_and_search_together_and_their_download(servers: Servers, visit: Visit, activities: Activities) -> None:
    matching = [
        row
        for row in activities
        if row["type"] == "TransferOut"
        and row["token"]["symbol"] == "LMN"
        and (row["counterparty"] or "").lower() == DESK
    ]
    assert 1 < len(matching) < PAGE
    with visit() as visitor:
        frame, table = opened(visitor, servers)
        table.choose("#filter-direction", "Out")
        out = [row for row in activities if row["direction"] == "Out"]
        assert shown(table) == true(out[:PAGE])
        assert table.range().endswith(f"of {len(out)} activities")
        table.choose("#filter-type", "Transfer out")
        table.choose("#filter-token", "LMN")
        table.search("exchange <i>")
        assert shown(table) == true(matching)
        assert {row["counterparty"].name for row in table.rows()} == {DESK_NAME}
        lines = list(csv.DictReader(io.StringIO(table.download())))
        assert frame.inner_text("#download-state") == "The download has started."
    names = ("transactionHash", "counterparty", "amount", "amountRaw", "value", "type", "direction")
    assert [[line[name] for name in names] for line in lines] == [[row[name] for name in names] for row in matching]


def test_linked_zoom(servers: Servers, visit: Visit, activities: Activities) -> None:
    with visit() as visitor:
        frame, table = opened(visitor, servers)
        table.act(lambda: frame.click("[data-range='1M']"))
        assert frame.get_attribute("[data-range='1M']", "aria-pressed") == "true"
        chip = frame.inner_text("#chip-text")
        assert chip.startswith("Oct 21, 2026")
        within = [row for row in activities if row["date"] >= "2026-10-21"]
        assert table.range().endswith(f"of {len(within)} activities")
        visitor.screenshot("wallet-activity-zoomed")
        table.act(lambda: frame.click("#chip-clear"))
        assert table.range().endswith(f"of {len(activities)} activities")


def shortened_symbol() -> str:
    """Return the unpriced token's symbol as shortened on the page."""
    return SPAM_SYMBOL[:8]


def test_value_history(servers: Servers, visit: Visit, client: ApiClient) -> None:
    """The chart's table has every day with every digit, and marks unknown and incomplete values."""
    points = client.get(f"{WALLET}/value-history", interval="1d", **{"from": "2026-02-01", "to": "2026-11-21"})[
        "points"
    ]
    with visit() as visitor:
        frame, _ = opened(visitor, servers)
        frame.click("#value-data summary")
        rows = frame.evaluate(
            "() => [...document.querySelectorAll('#value-data tbody tr')].map((row) =>"
            " [...row.cells].map((cell) => cell.textContent))"
        )
        assert len(rows) == len(points)
        for (_, value, complete), point in zip(rows, points, strict=True):
            if point["value"] is None:
                assert value == "Not collected then"
            else:
                assert parsed(value) == Decimal(point["value"])
                assert all(name in complete for name in point["unpriced"])
        assert frame.locator("#value-gap").is_visible()
        assert frame.locator("#value-partial").is_visible()


def test_report_of_a_past_range(servers: Servers, visit: Visit, client: ApiClient) -> None:
    asked = {"from": "2026-03-01", "to": "2026-04-01"}
    then = walked(client.pages(f"{WALLET}/activities", limit=200, **asked))
    with visit() as visitor:
        frame, table = opened(visitor, servers, **asked)
        assert table.range() == f"1-25 of {len(then)} activities"
        assert shown(table) == true(then[:PAGE])
        assert "Past moment" in frame.inner_text("#moment")
        assert "0 reconciled" not in frame.inner_text("#strip")
        # The range has no gap, but its opening holdings may be incomplete; it does not show since when.
        assert "does not reach the wallet's first block" in frame.inner_text("#incomplete")
        assert "2026" not in frame.inner_text("#incomplete")
        visitor.screenshot("wallet-activity-past")


def test_flow_chart_shows_inflows_above_and_outflows_below_zero(servers: Servers, visit: Visit) -> None:
    with visit() as visitor:
        frame, _ = opened(visitor, servers)
        frame.click("[data-measure='value']")
        ticks = frame.locator("#timeline-chart text").all_text_contents()
        assert any(tick.startswith("\N{MINUS SIGN}$") for tick in ticks)
        assert "$0" in ticks
        visitor.screenshot("wallet-activity-flows")


def test_fees_are_shown_with_their_transaction_or_separately(own_servers: Servers, visit: Visit) -> None:
    publish_folded_fees(own_servers.world, 2, 8)
    with own_servers.api.client("viewer") as client:
        everything = walked(client.pages(f"{WALLET}/activities", limit=200))
    with visit() as visitor:
        frame, table = opened(visitor, own_servers)
        tile = frame.locator(".kpi", has_text="Activities").locator(".number")
        assert table.range().endswith(f"of {len(everything) - 8} activities")
        assert parsed(tile.inner_text()) == len(everything) - 8
        with_fees = [cell.text for cell in table.column("type") if "Fee " in cell.text]
        assert with_fees
        assert all("ETH · $" in text for text in with_fees)
        assert visitor.axe(frame) == []
        visitor.screenshot("wallet-activity-fees-folded")
        table.act(lambda: frame.click("[data-fees='apart']"))
        assert table.range().endswith(f"of {len(everything)} activities")
        assert parsed(tile.inner_text()) == len(everything)
        assert shown(table) == true(everything[:PAGE])
        assert not [cell for cell in table.column("type") if "Fee " in cell.text]
        lines = list(csv.DictReader(io.StringIO(table.download())))
        assert len(lines) == len(everything)


def test_transaction_of_several_parties_shows_its_fee_and_their_number(own_servers: Servers, visit: Visit) -> None:
    rows = market_rows(own_servers.world)
    key = own_servers.world.subject_keys[TREASURY_ID]
    newest = sorted((row for row in rows["wallet_activities"] if row["subject_key"] == key), key=_place)[-3:]
    paid, shared, coinbase = newest[::-1]
    paid |= {"fee_raw": 12_345, "fee": "0.000000000000012345", "fee_status": "Paid"}
    none = {"counterparty_address": None, "counterparty_count": 0, "counterparty_status": "None"}
    others = [f"0x{'a' * 40}", f"0x{'b' * 40}"]
    shared |= none | {"fee_status": "Shared", "counterparty_count": 102, "counterparty_status": "Several"}
    shared["counterparties"] = others
    coinbase |= none | {"activity_type": "Coinbase", "direction": "In", "fee_status": "NotPaid", "counterparties": []}
    publish(own_servers.world.settings.serving_dir, 2, rows)
    with visit() as visitor:
        frame, table = opened(visitor, own_servers)
        first, second, third = table.rows()[:3]
        assert "Fee " in first["type"].text
        assert (first["type"].title or "").startswith("0.000000000000012345 ")
        assert second["counterparty"].text == "102 counterparties"
        assert [line.lower() for line in (second["counterparty"].title or "").split("\n")] == [*others, "100 more"]
        assert (third["type"].text, third["counterparty"].text) == ("Coinbase", "—")
        assert visitor.axe(frame) == []
        visitor.screenshot("wallet-activity-several-parties")


def test_activity_on_a_phone_shows_its_token_and_full_fee(own_servers: Servers, visit: Visit) -> None:
    publish_folded_fees(own_servers.world, 2, 8)
    with visit(viewport={"width": 390, "height": 860}, has_touch=True, is_mobile=True) as visitor:
        frame, table = opened(visitor, own_servers)
        for parts, expected in ((".token .name", PAGE), (".fee", None)):
            boxes = frame.evaluate(_INSIDE, parts)
            assert len(boxes) == (expected or len([cell for cell in table.column("type") if "Fee " in cell.text]))
            assert all(boxes), parts
        days = frame.locator("#table-body .day").all_inner_texts()
        assert days == sorted(set(days), key=days.index)
        first = table.rows()[0]["transaction"].full
        table.choose("#sort", "Oldest first")
        assert table.rows()[0]["transaction"].full != first
        assert frame.locator("#table-head").is_hidden()


# Of each matching element: whether it is fully visible inside its row.
_INSIDE = """(parts) => [...document.querySelectorAll(`#table-body ${parts}`)].map((part) => {
  const box = part.getBoundingClientRect(), row = part.closest('tr').getBoundingClientRect();
  return box.width > 20 && box.left >= row.left && box.right <= row.right && box.bottom <= row.bottom;
})"""


def test_line_separates_final_rows_from_others(own_servers: Servers, visit: Visit) -> None:
    rows = market_rows(own_servers.world)
    key = own_servers.world.subject_keys[TREASURY_ID]
    newest = sorted((row for row in rows["wallet_activities"] if row["subject_key"] == key), key=_place)[-3:]
    for row in newest:
        row["status"] = "Confirmed"
    publish(own_servers.world.settings.serving_dir, 2, rows)
    position = (
        "() => [...document.querySelectorAll('#table-body tr:not(.day)')].findIndex((row) => row.matches('.tail'))"
    )
    with visit() as visitor:
        frame, table = opened(visitor, own_servers)
        assert frame.inner_text("#table-body .tail") == "Above this line: not final yet"
        assert frame.evaluate(position) == 3
        assert frame.get_by_text("Confirmed", exact=True).count() == 1
        assert visitor.axe(frame) == []
        table.sort("Time")
        assert frame.locator("#table-body .tail").count() == 0
        table.turn("last")
        assert frame.inner_text("#table-body .tail") == "Below this line: not final yet"
        table.sort("Type")
        assert frame.locator("#table-body .line").count() == 0


def _place(row: dict[str, Any]) -> int:
    return int(row["block_number"])


def test_charts_start_at_the_first_values_and_activities(own_servers: Servers, visit: Visit) -> None:
    rows = market_rows(own_servers.world)
    key = own_servers.world.subject_keys[TREASURY_ID]
    days = sorted((row for row in rows["wallet_value_days"] if row["subject_key"] == key), key=lambda row: row["day"])
    for row in days[:-5]:
        row |= {"value": None, "value_status": "NoPrice"}
    publish(own_servers.world.settings.serving_dir, 2, rows)
    with visit() as visitor:
        frame, table = opened(visitor, own_servers)
        values, activities = (
            (frame.get_attribute(f"#{part}-chart", "aria-label") or "") for part in ("value", "timeline")
        )
        assert "Nov 15, 2026 to Nov 20, 2026" in values
        assert "per week" in activities
        # A range within both charts can still be chosen.
        table.act(lambda: frame.click("[data-range='3M']"))
        ticks = frame.locator("#value-chart text").all_text_contents()
        assert any(tick.startswith("Sep") for tick in ticks)
        table.act(lambda: frame.click("[data-range='All']"))
        assert not any(tick.startswith("Sep") for tick in frame.locator("#value-chart text").all_text_contents())


def test_html_in_names_and_symbols_stays_text(servers: Servers, visit: Visit) -> None:
    with visit() as visitor:
        frame, table = opened(visitor, servers)
        assert frame.inner_text("h1") == TREASURY_NAME
        assert SPAM_SYMBOL in {cell.name for cell in table.column("token")}
        assert frame.locator("#content img, #content script").count() == 0
        assert frame.evaluate("document.title") != "pwned"
        assert visitor.page.title() == "Customer portal"
