"""The index page, opened by a link of `ledgermart report`, and the reports opened from it."""

import json
import os
import subprocess
from datetime import timedelta
from decimal import Decimal, localcontext

import pytest
from playwright.sync_api import Frame

from api.reports import tokens
from tests.api.world import time_of
from tests.browser.configured import LUMEN_ID, LUMEN_NAME, TREASURY_NAME
from tests.browser.conftest import Servers, Visit
from tests.browser.market import NEWEST
from tests.browser.reading import parsed
from tests.e2e.service import LEDGERMART

pytestmark = pytest.mark.ci


@pytest.fixture(scope="module")
def link(servers: Servers) -> str:
    """The link that the command prints for a viewer's key."""
    settings = servers.world.settings
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("LEDGERMART_")},
        "LEDGERMART_DATA_DIR": str(settings.data_dir),
        "LEDGERMART_NETWORKS": str(settings.networks_file),
        "LEDGERMART_PUBLIC_URL": servers.api.url,
        "LEDGERMART_API_KEY": servers.world.keys["viewer"],
    }
    done = subprocess.run(
        [str(LEDGERMART), "report", "--json"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["reportUrl"])


def test_index_has_every_report_of_the_tenant_and_no_other(servers: Servers, visit: Visit, link: str) -> None:
    with servers.api.client("viewer") as client:
        tokens = [row for page in client.pages("/v1/tokens") for row in page["data"]]
        wallets = [row for page in client.pages("/v1/wallets") for row in page["data"]]
    with visit() as visitor:
        frame = visitor.open(link)
        assert "#" not in visitor.page.url
        # Untracked subjects are shown on request.
        shown = frame.inner_text("#report")
        for subject in (*tokens, *wallets):
            is_shown = (subject["name"] or subject.get("symbol") or subject["ledgerId"][:8]) in shown
            assert is_shown is (subject["trackingStatus"] == "enabled")
        with visitor.page.expect_response(lambda response: "/index" in response.url):
            frame.click("[data-tracked='']")
        frame.wait_for_function("() => document.body.textContent.includes('not tracked')")
        for part, subjects in (("#tokens", tokens), ("#wallets", wallets)):
            shown = frame.inner_text(part)
            for subject in subjects:
                assert (subject["name"] or subject.get("symbol") or subject["ledgerId"][:8]) in shown
        assert "THEIRS" not in frame.inner_text("body")
        assert visitor.axe(frame) == []
        visitor.screenshot("index-light")


def test_sorts_and_totals(servers: Servers, visit: Visit, link: str) -> None:
    with servers.api.client("viewer") as client:
        tokens = [row for page in client.pages("/v1/tokens", trackingStatus="enabled") for row in page["data"]]
        wallets = [row for page in client.pages("/v1/wallets", trackingStatus="enabled") for row in page["data"]]
    with visit() as visitor:
        frame = visitor.open(link)

        def names() -> list[str]:
            return frame.locator("#tokens .entry-title > :first-child").all_text_contents()

        def sort(label: str) -> None:
            with visitor.page.expect_response(lambda response: "/index" in response.url):
                frame.get_by_role("button", name=f"Sort by {label}").first.click()
            frame.wait_for_function("() => document.documentElement.dataset.state === 'ready'")

        values = {row["name"] or row["symbol"]: row["marketCapitalization"] for row in tokens}
        known = [name for name in values if values[name] is not None]
        known.sort(key=lambda name: Decimal(values[name]), reverse=True)
        assert names()[: len(known)] == known
        sort("Token")
        assert names() == sorted(values, key=str.casefold)
        sort("Token")
        assert names() == sorted(values, key=str.casefold, reverse=True)
        assert frame.evaluate("document.activeElement.textContent") == "Token"
        for part, each in (("tokens", values.values()), ("wallets", [row["totalValue"] for row in wallets])):
            with localcontext(prec=200):
                total = sum((Decimal(value) for value in each if value is not None), Decimal(0))
            assert parsed(frame.get_attribute(f"#{part}-sum [title]", "title") or "") == total


def test_dark_and_narrow(visit: Visit, link: str) -> None:
    with visit(color_scheme="dark", viewport={"width": 400, "height": 860}) as visitor:
        frame = visitor.open(link)
        assert frame.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert visitor.axe(frame) == []
        visitor.screenshot("index-dark-narrow")


@pytest.mark.parametrize(
    ("part", "search", "title"), [("#tokens", "lumen", LUMEN_NAME), ("#wallets", "treasury", TREASURY_NAME)]
)
def test_search_and_open(visit: Visit, link: str, part: str, search: str, title: str) -> None:
    with visit() as visitor:
        frame = visitor.open(link)
        with visitor.page.expect_response(lambda response: "q=" in response.url):
            frame.fill("#search", search)
        frame.wait_for_function("() => document.querySelectorAll('button.entry').length === 1")
        frame.locator(part).get_by_text(title).click()
        report = visitor.framed(".viewer iframe")
        assert title in report.inner_text("#title")
        assert not [opened for opened in visitor.page.frames if "#" in opened.url]
        visitor.screenshot(f"index-opened-{part[1:]}")
        visitor.page.go_back()
        frame.locator("button.entry").wait_for()
        assert frame.locator("iframe.report").count() == 0


def test_from_a_cap_table_to_its_changes_and_back(
    servers: Servers, visit: Visit, monkeypatch: pytest.MonkeyPatch, link: str
) -> None:
    monkeypatch.setattr("api.reports.calls.utc_now", lambda: time_of(NEWEST))
    with visit() as visitor, servers.api.client() as client:
        head = client.get(f"/v1/tokens/{LUMEN_ID}/cap-table/changes", limit=1, **{"from": "2026-10-31"})
        frame = visitor.open(link)
        frame.locator("#tokens").get_by_text(LUMEN_NAME).click()
        visitor.framed(".viewer iframe")
        pressed = frame.locator(".viewer [aria-pressed=true]")
        assert pressed.all_inner_texts() == ["Cap table"]

        def turn_to(label: str) -> Frame:
            old = visitor.page.wait_for_selector(".viewer iframe")
            frame.get_by_role("button", name=label, exact=True).click()
            assert old is not None
            old.wait_for_element_state("hidden")
            assert pressed.all_inner_texts() == [label]
            return visitor.framed(".viewer iframe")

        request = f"POST /v1/tokens/{LUMEN_ID}/history-requests"
        assert request in visitor.framed(".viewer iframe").inner_text("#incomplete")
        report = turn_to("Changes since last month's end")
        assert f"blocks {head['from']['blockNumber']:,} → {head['to']['blockNumber']:,}" in report.inner_text("#moment")
        # If a page embeds a report, the heading is inside the report.
        assert [found for found in visitor.axe(frame) if "page-has-heading-one" not in found] == []
        visitor.screenshot("index-opened-changes")
        assert "Cap table ·" in turn_to("Cap table").inner_text("#subtitle")
        turn_to("Changes since last month's end")
        # Switching reports adds no step to the browser's history.
        visitor.page.go_back()
        frame.locator("button.entry").first.wait_for()
        assert frame.locator("iframe.report").count() == 0


def test_only_the_open_report_is_kept_alive(
    servers: Servers, visit: Visit, monkeypatch: pytest.MonkeyPatch, link: str
) -> None:
    monkeypatch.setattr("api.reports.calls.utc_now", lambda: time_of(NEWEST))
    with visit() as visitor:
        frame = visitor.open(link)
        frame.locator("#tokens").get_by_text(LUMEN_NAME).click()
        visitor.framed(".viewer iframe")
        monkeypatch.setattr(tokens, "LIFE", timedelta(0))
        frame.get_by_role("button", name="Changes since").click()
        frame.wait_for_function("() => document.querySelector('.viewer iframe').src.includes('cap-table-changes')")
        visitor.framed(".viewer iframe", "expired")
        monkeypatch.undo()
        report = visitor.framed(".viewer iframe")
        assert "Cap table changes" in report.inner_text("#subtitle")
        visitor.forgive("status of 401")
