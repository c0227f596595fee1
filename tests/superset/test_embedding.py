"""The reports as a customer's visitors see them: the site, in it our page, in it Superset's dashboard."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import httpx
import pytest
from playwright.sync_api import Browser, FrameLocator, Page

from api.reports import superset as guest_tokens
from tests.browser.configured import LUMEN_ID, LUMEN_NAME, TREASURY_ID, TREASURY_NAME
from tests.browser.servers import Api, Portal
from tests.browser.visitor import SCREENSHOTS
from tests.superset.service import Superset
from tests.superset.world import MARK

_TIMEOUT_MS = 90_000

pytestmark = pytest.mark.usefixtures("superset")


@contextmanager
def opened(browser: Browser, url: str, theme: str = "light") -> Iterator[tuple[Page, FrameLocator, set[str]]]:
    """Open a page of the customer's site; gives it, the dashboard in it, and the hosts that were asked."""
    hosts: set[str] = set()
    with browser.new_context(
        viewport={"width": 1400, "height": 2400}, color_scheme="dark" if theme == "dark" else "light"
    ) as context:
        page = context.new_page()
        page.set_default_timeout(_TIMEOUT_MS)
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
    """What is left of a cell; Superset shows some tags in a name as text, and leaves out scripts."""
    return re.sub("</?[a-z]+>", "", text)


def named(name: str | None) -> str:
    return "N/A" if name is None else without_tags(name)


def test_the_cap_table_is_that_of_the_json_interface(browser: Browser, api: Api, portal: Portal) -> None:
    with api.client("viewer") as client:
        table = client.get(f"/v1/tokens/{LUMEN_ID}/cap-table", limit="50")
    with opened(browser, portal.page("cap-table", tokenId=LUMEN_ID)) as (page, dashboard, hosts):
        settle(dashboard, "Holders of the token")
        rows = cells_of(dashboard, "Holders of the token")
        assert len(rows) == 50
        assert [[*row[:2], without_tags(row[2]), *row[3:5]] for row in rows] == [
            [str(row["rank"]), row["wallet"].lower(), named(row["name"]), row["quantity"], row["percentage"]]
            for row in table["data"]
        ]
        assert {row[2] for row in rows} > {"N/A"}
        assert [row[5] for row in rows] == [row["value"] for row in table["data"]]
        [figures] = cells_of(dashboard, "Unattributed %")
        concentration = table["concentration"]
        assert figures[:5] == [
            table["totalSupply"],
            table["unattributed"]["quantity"],
            table["unattributed"]["percentage"],
            *(concentration[name] or "N/A" for name in ("hhi", "gini")),
        ]
        [token] = cells_of(dashboard, "As of block")
        assert without_tags(token[0]) == named(LUMEN_NAME)
        assert token[3:6] == [
            str(table["asOf"]["blockNumber"]),
            re.sub("[TZ]", " ", table["asOf"]["blockTime"]).strip(),
            table["asOf"]["finality"],
        ]
        assert MARK not in text_of(dashboard)
        assert hosts == {url.split("/")[2] for url in (portal.origin, api.url, api.world.settings.superset_url)}
        page.screenshot(path=SCREENSHOTS / "superset-cap-table.png", full_page=True)


def test_the_wallet_is_that_of_the_json_interface(browser: Browser, api: Api, portal: Portal) -> None:
    with api.client("viewer") as client:
        values = client.get(f"/v1/wallets/{TREASURY_ID}/value-history")
        activities = client.get(f"/v1/wallets/{TREASURY_ID}/activities", limit="50")
        balances = client.get(f"/v1/wallets/{TREASURY_ID}/balances")
    with opened(browser, portal.page("wallet-activity", walletId=TREASURY_ID, theme="dark"), "dark") as (
        page,
        dashboard,
        _,
    ):
        settle(dashboard, "Activities of the wallet")
        [now] = cells_of(dashboard, "Left out of the value")
        assert now[:2] == [values["totalValue"], values["currency"]]
        rows = cells_of(dashboard, "Activities of the wallet")
        assert [(row[1], *row[4:7]) for row in rows] == [
            (row["type"], row["amount"], row["amountStatus"], row["value"] or "N/A") for row in activities["data"]
        ]
        assert [without_tags(row[9]) for row in rows] == [named(row["counterpartyName"]) for row in activities["data"]]
        [wallet] = cells_of(dashboard, "As of block")
        assert without_tags(wallet[0]) == named(TREASURY_NAME)
        held = {row[1] for row in cells_of(dashboard, "Balances")}
        assert held == {row["quantity"] for row in balances["current"]}
        # A symbol that is HTML stays text.
        assert dashboard.locator("td img").count() == 0
        assert "pwned" not in page.title()
        assert MARK not in text_of(dashboard)
        page.screenshot(path=SCREENSHOTS / "superset-wallet-activity-dark.png", full_page=True)


def test_a_range_cuts_the_activities(browser: Browser, api: Api, portal: Portal) -> None:
    bounds = {"from": "2026-03-01", "to": "2026-03-15"}
    with api.client("viewer") as client:
        activities = client.get(f"/v1/wallets/{TREASURY_ID}/activities", limit="50", **bounds)
    with opened(browser, portal.page("wallet-activity", walletId=TREASURY_ID, **bounds)) as (_, dashboard, _):
        settle(dashboard, "Activities of the wallet")
        rows = cells_of(dashboard, "Activities of the wallet")
        assert len(rows) == len(activities["data"]) < 50
        assert [row[4] for row in rows] == [row["amount"] for row in activities["data"]]


def test_another_site_cannot_frame_it(browser: Browser, api: Api, portal: Portal, superset: Superset) -> None:
    with api.client("viewer") as client:
        link = client.get("/v1/reports/cap-table", tokenId=LUMEN_ID)["reportUrl"]
    elsewhere = portal.origin.replace("localhost", "127.0.0.1")
    own = f"{superset.url}/embedded/{superset.provisioned('cap-table')['embeddedId']}"
    with browser.new_context() as context:
        for url in (link, own, f"{own}?frame={superset.frame(portal.origin)}"):
            page = context.new_page()
            page.goto(httpx.URL(f"{elsewhere}/framed", params={"url": url}).__str__())
            page.wait_for_timeout(1500)
            framed = page.frames[1]
            assert framed.url.startswith("chrome-error://"), url


def test_tokens_are_renewed_until_access_ends(
    browser: Browser, api: Api, portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The page asks 5 s before the end; a dashboard that takes longer than this to come up is out of luck.
    monkeypatch.setattr(guest_tokens, "LIFE", timedelta(seconds=60))
    with opened(browser, portal.page("cap-table", tokenId=LUMEN_ID)) as (page, dashboard, _):
        settle(dashboard, "Holders of the token")
        with page.expect_response(lambda answer: answer.url.endswith("/embed/superset-token")) as renewal:
            pass
        assert renewal.value.status == 200
        dashboard.locator("tbody tr").first.wait_for()
        with api.client() as client:
            client.post("/v1/reports/revocations", {})
        with page.expect_response(lambda answer: answer.url.endswith("/embed/superset-token")) as refusal:
            pass
        assert refusal.value.status == 401
        shell = page.frame_locator("iframe")
        shell.locator("html[data-state=denied]").wait_for(state="attached")
        assert shell.locator("iframe").count() == 0
