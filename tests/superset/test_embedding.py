"""The reports as a customer's visitors see them: the site, in it our page, in it Superset's dashboard."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, FrameLocator, Page

from api.reports import superset as guest_tokens
from tests.browser.configured import LUMEN_ID, LUMEN_NAME, TREASURY_ID, TREASURY_NAME
from tests.browser.servers import Api, Portal, serving_api
from tests.browser.visitor import SCREENSHOTS
from tests.superset.service import Guest, Superset, rows_of
from tests.superset.world import MARK
from tests.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.release, pytest.mark.usefixtures("superset")]


@contextmanager
def opened(browser: Browser, url: str, theme: str = "light") -> Iterator[tuple[Page, FrameLocator, set[str]]]:
    """Open a page of the customer's site; yield it, the dashboard in it, and the requested hosts."""
    hosts: set[str] = set()
    with browser.new_context(
        viewport={"width": 1400, "height": 2400}, color_scheme="dark" if theme == "dark" else "light"
    ) as context:
        page = context.new_page()
        page.set_default_timeout(1000 * PATIENCE_SECONDS)
        context.on("request", lambda request: hosts.add(request.url.split("/")[2]))
        page.goto(url)
        yield page, page.frame_locator("iframe").frame_locator("iframe"), hosts


def settle(dashboard: FrameLocator, last: str) -> None:
    """Wait until the last chart has rows, and no chart waits for its own."""
    table = dashboard.locator(".dashboard-component-chart-holder", has_text=last)
    table.locator("tbody tr").first.wait_for()
    dashboard.locator(".loading").first.wait_for(state="detached")


def text_of(dashboard: FrameLocator) -> str:
    return dashboard.locator("body").inner_text()


def cells_of(dashboard: FrameLocator, chart: str) -> list[list[str]]:
    """Return the cells of a table by its chart's name."""
    holder = dashboard.locator(".dashboard-component-chart-holder", has_text=chart).last
    return [row.locator("td").all_inner_texts() for row in holder.locator("tbody tr").all()]


def without_tags(text: str) -> str:
    """Remove tags from a cell; Superset shows some tags in a name as text, and drops scripts."""
    return re.sub("</?[a-z]+>", "", text)


def named(name: str | None) -> str:
    return "N/A" if name is None else without_tags(name)


def two_decimals(text: str | None) -> str:
    """Format a number as in tables; numbers too large for Superset's page only appear as exact figures."""
    return "N/A" if text is None or abs(float(text)) >= 1e21 else f"{float(text):,.2f}"


def in_dollars(text: str | None) -> str:
    return "N/A" if text is None else f"$ {two_decimals(text)}"


def label(name: str | None, address: str | None) -> str:
    """The name of an address, else the address without its middle."""
    if address is None:
        return "N/A"
    return f"{address[:6]}…{address[-4:]}" if name is None else without_tags(name)


def show_exact_figures(dashboard: FrameLocator) -> None:
    """Open the tab of the tables with all digits."""
    dashboard.get_by_role("tab", name="Exact figures").click()


def test_the_cap_table_is_that_of_the_json_interface(browser: Browser, api: Api, portal: Portal) -> None:
    with api.client("viewer") as client:
        table = client.get(f"/v1/tokens/{LUMEN_ID}/cap-table", limit="25")
    with opened(browser, portal.page("cap-table", tokenId=LUMEN_ID)) as (page, dashboard, hosts):
        settle(dashboard, "Holders of the token")
        rows = cells_of(dashboard, "Holders of the token")
        assert len(rows) == 25
        assert [[row[0], without_tags(row[1]), *row[2:6]] for row in rows] == [
            [
                str(row["rank"]),
                label(row["name"], row["wallet"]),
                row["wallet"],
                two_decimals(row["quantity"]),
                two_decimals(row["percentage"]),
                in_dollars(row["value"]),
            ]
            for row in table["data"]
        ]
        assert {row["name"] for row in table["data"]} > {None}
        details = {row[0]: row[1:] for row in cells_of(dashboard, "Details")}
        concentration = table["concentration"]
        assert details["Total supply"][0] == table["totalSupply"]
        assert details["Unattributed"][0] == table["unattributed"]["quantity"]
        assert details["Unattributed %"][0] == table["unattributed"]["percentage"]
        assert details["HHI"] == [concentration["hhi"] or "N/A", concentration["hhiStatus"]]
        assert details["Gini"] == [concentration["gini"] or "N/A", concentration["giniStatus"]]
        assert without_tags(details["Token"][0]) == named(LUMEN_NAME)
        assert details["As of block"] == [str(table["asOf"]["blockNumber"]), table["asOf"]["finality"]]
        assert details["Block time (UTC)"][0] == re.sub("[TZ]", " ", table["asOf"]["blockTime"]).strip()
        page.screenshot(path=SCREENSHOTS / "superset-cap-table.png", full_page=True)
        show_exact_figures(dashboard)
        settle(dashboard, "Exact figures of the holders")
        assert [row[2:5] for row in cells_of(dashboard, "Exact figures of the holders")] == [
            [row["quantity"], row["percentage"], row["value"]] for row in table["data"]
        ]
        assert MARK not in text_of(dashboard).lower()
        assert hosts == {url.split("/")[2] for url in (portal.origin, api.url, api.world.settings.superset_url)}


def test_the_wallet_is_that_of_the_json_interface(browser: Browser, api: Api, portal: Portal) -> None:
    with api.client("viewer") as client:
        values = client.get(f"/v1/wallets/{TREASURY_ID}/value-history")
        activities = client.get(f"/v1/wallets/{TREASURY_ID}/activities", limit="25")
        balances = client.get(f"/v1/wallets/{TREASURY_ID}/balances")
    with opened(browser, portal.page("wallet-activity", walletId=TREASURY_ID, theme="dark"), "dark") as (
        page,
        dashboard,
        _,
    ):
        settle(dashboard, "Activities of the wallet")
        details = {row[0]: row[1:] for row in cells_of(dashboard, "Details")}
        assert details[f"Total value ({values['currency']})"][0] == values["totalValue"]
        assert without_tags(details["Wallet"][0]) == named(TREASURY_NAME)
        rows = cells_of(dashboard, "Activities of the wallet")
        assert [(row[1], row[4]) for row in rows] == [
            (row["type"], in_dollars(row["value"])) for row in activities["data"]
        ]
        assert [without_tags(row[6]) for row in rows] == [
            label(row["counterpartyName"], row["counterparty"]) for row in activities["data"]
        ]
        held = [row[2] for row in cells_of(dashboard, "Balances")]
        assert sorted(held) == sorted(in_dollars(row["value"]) for row in balances["current"])
        page.screenshot(path=SCREENSHOTS / "superset-wallet-activity-dark.png", full_page=True)
        show_exact_figures(dashboard)
        settle(dashboard, "Exact figures of the activities")
        exact = cells_of(dashboard, "Exact figures of the activities")
        assert [(row[1], *row[3:6]) for row in exact] == [
            (row["type"], row["amount"], row["amountStatus"], row["value"] or "N/A") for row in activities["data"]
        ]
        assert {row[2] for row in cells_of(dashboard, "Exact balances")} == {
            row["quantity"] for row in balances["current"]
        }
        # A symbol that is HTML stays text.
        assert dashboard.locator("td img").count() == 0
        assert "pwned" not in page.title()
        assert MARK not in text_of(dashboard).lower()


def test_the_ring_is_the_whole_supply(
    superset: Superset, api: Api, chart: Callable[[str], dict[str, Any]], guest: Guest
) -> None:
    with api.client("viewer") as client:
        table = client.get(f"/v1/tokens/{LUMEN_ID}/cap-table", limit="10")
    slices = {
        row["slice"]: row["percentage"] for row in rows_of(guest.query(chart("Ownership"), ["slice", "percentage"]))
    }
    assert abs(sum(slices.values()) - 100) < 1e-9
    assert slices["Not attributed"] == float(table["unattributed"]["percentage"])
    largest = {label(row["name"], row["wallet"]): float(row["percentage"]) for row in table["data"]}
    assert {without_tags(name): share for name, share in slices.items()}.items() >= largest.items()


def test_a_page_of_another_origin_says_what_to_set(browser: Browser, api: Api) -> None:
    with serving_api(api.world) as other, other.client("viewer") as client:
        link = client.get("/v1/reports/cap-table", tokenId=LUMEN_ID)["reportUrl"]
        origin = other.url
        assert origin != api.url
        with browser.new_context() as context:
            page = context.new_page()
            page.goto(link.replace(api.url, origin))
            page.locator("html[data-state=error]").wait_for(state="attached")
            shown = page.locator("#panel").inner_text()
    assert f"Set LEDGERMART_PUBLIC_URL to {origin}" in shown
    assert api.url in shown


def test_a_range_cuts_the_activities(browser: Browser, api: Api, portal: Portal) -> None:
    bounds = {"from": "2026-03-01", "to": "2026-03-15"}
    with api.client("viewer") as client:
        activities = client.get(f"/v1/wallets/{TREASURY_ID}/activities", limit="25", **bounds)
    with opened(browser, portal.page("wallet-activity", walletId=TREASURY_ID, **bounds)) as (_, dashboard, _):
        settle(dashboard, "Activities of the wallet")
        rows = cells_of(dashboard, "Activities of the wallet")
        assert len(rows) == len(activities["data"])
        assert bounds["from"] <= rows[-1][0] <= rows[0][0] < bounds["to"]
        assert [row[4] for row in rows] == [in_dollars(row["value"]) for row in activities["data"]]


def test_another_site_cannot_frame_it(browser: Browser, api: Api, portal: Portal, superset: Superset) -> None:
    with api.client("viewer") as client:
        link = client.get("/v1/reports/cap-table", tokenId=LUMEN_ID)["reportUrl"]
    elsewhere = portal.origin.replace("localhost", "127.0.0.1")
    own = f"{superset.url}/embedded/{superset.provisioned('cap-table')['embeddedId']}"
    with browser.new_context() as context:
        for url in (link, own, f"{own}?frame={superset.frame(portal.origin)}"):
            page = context.new_page()
            page.goto(httpx.URL(f"{elsewhere}/framed", params={"url": url}).__str__())
            framed = page.frames[1]
            while framed.url in ("", "about:blank"):
                page.wait_for_timeout(50)
            assert framed.url.startswith("chrome-error://"), url


def test_tokens_are_renewed_until_access_ends(
    browser: Browser, api: Api, portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The page renews its token 5 s before the end, so the dashboard must load sooner.
    monkeypatch.setattr(guest_tokens, "LIFE", timedelta(seconds=60))
    with opened(browser, portal.page("cap-table", tokenId=LUMEN_ID)) as (page, dashboard, _):
        settle(dashboard, "Holders of the token")
        with page.expect_response(lambda answer: answer.url.endswith("/embed/superset-token")) as renewal:
            pass
        assert renewal.value.status == 200
        dashboard.locator("tbody tr").first.wait_for()
        with api.client() as client:
            client.post("/v1/reports/revocations")
        with page.expect_response(lambda answer: answer.url.endswith("/embed/superset-token")) as refusal:
            pass
        assert refusal.value.status == 401
        shell = page.frame_locator("iframe")
        shell.locator("html[data-state=denied]").wait_for(state="attached")
        assert shell.locator("iframe").count() == 0
