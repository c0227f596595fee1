"""Reports on a customer's page of another origin: allowed origins, expiry, and traces left behind."""

from datetime import timedelta
from functools import partial

import jwt
import pytest

from api.reports import tokens
from tests.browser.configured import LUMEN_ID, TREASURY_ID
from tests.browser.conftest import Servers, Visit
from tests.browser.reading import Table
from tests.browser.servers import Portal, allow, token_of

REFUSED = "frame-ancestors"
UNAUTHORIZED = r"status of 401"


@pytest.mark.proof("a report is shown in a page of an allowed origin")
def test_report_is_shown_in_a_page_of_another_origin(servers: Servers, visit: Visit) -> None:
    with visit() as visitor:
        frame = visitor.open(servers.portal.page("wallet-activity", walletId=TREASURY_ID))
        assert visitor.page.evaluate("location.origin") != frame.evaluate("location.origin")
        assert "#" not in frame.evaluate("location.href")
        assert frame.evaluate("performance.getEntriesByType('navigation')[0].type") == "navigate"
        # The frame has the height requested by the report, so it has no scroll bar.
        visitor.page.wait_for_function(
            "() => messages.at(-1)?.height > 900 && frame().clientHeight === messages.at(-1).height"
        )
        frame.wait_for_function("() => document.documentElement.scrollHeight === innerHeight")
        # The surrounding page receives no other messages.
        assert visitor.page.evaluate("[...new Set(messages.flatMap(Object.keys))].sort()") == ["height", "type"]
    assert any("/embed/" in line for line in servers.api.log)
    assert not any("eyJ" in line for line in servers.api.log)


def test_the_snippet_lets_a_report_print_and_open_links(servers: Servers, visit: Visit) -> None:
    with visit() as visitor:
        frame = visitor.open(servers.portal.page("cap-table", tokenId=LUMEN_ID))
        frame.evaluate("addEventListener('beforeprint', () => (window.printed = true))")
        frame.click("#print")
        frame.wait_for_function("() => window.printed || document.body.innerText.includes('does not let it print')")
        assert frame.evaluate("window.printed")
        with visitor.page.expect_popup():
            frame.evaluate("() => void window.open('about:blank', '_blank')")


@pytest.mark.proof("another origin cannot frame a report")
def test_other_origin_cannot_frame_a_report(servers: Servers, visit: Visit) -> None:
    with Portal(servers.api) as stranger, visit() as visitor:
        visitor.page.goto(stranger.page("wallet-activity", walletId=TREASURY_ID))
        assert visitor.page.wait_for_selector("iframe").content_frame().url.startswith("chrome-error:")
        assert not [path for path in visitor.paths if "/embed/data" in path]
        visitor.forgive(REFUSED)


@pytest.mark.release
def test_only_the_api_may_frame_a_report_without_allowed_origins(own_servers: Servers, visit: Visit) -> None:
    allow(own_servers.api)
    with visit() as visitor:
        visitor.page.goto(own_servers.portal.page("cap-table", tokenId=LUMEN_ID))
        assert visitor.page.wait_for_selector("iframe").content_frame().url.startswith("chrome-error:")
        visitor.forgive(REFUSED)
    with visit() as visitor, own_servers.api.client() as client:
        visitor.open(client.get("/v1/reports/cap-table", tokenId=LUMEN_ID)["reportUrl"])


def test_unknown_link_shows_an_error_page(servers: Servers, visit: Visit) -> None:
    with visit() as visitor:
        answer = visitor.page.goto(f"{servers.api.url}/embed/cap-table/emb_01k9zr3m5e8v2c7q4w6t1x0y99")
        assert answer is not None
        assert answer.status == 404
        assert visitor.page.inner_text("h1")
        assert visitor.axe(visitor.page.main_frame) == []
        visitor.screenshot("state-unknown-link")
        visitor.forgive("status of 404")


def test_expired_link_works_again_with_a_token_of_the_host(
    servers: Servers, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "LIFE", timedelta(0))
    with visit() as visitor:
        frame = visitor.open(servers.portal.page("cap-table", tokenId=LUMEN_ID), "expired")
        assert "expired" in frame.inner_text("#panel")
        assert "LMN" not in frame.inner_text("body")
        visitor.page.wait_for_function("() => messages.some((message) => message.type === 'report:token-expired')")
        assert visitor.axe(frame) == []
        visitor.screenshot("state-expired")
        monkeypatch.undo()
        # The host supplies a fresh token, and the report continues in place.
        visitor.page.evaluate("handOver()")
        assert "Lumen" in visitor.report().inner_text("#title")
        visitor.forgive(UNAUTHORIZED)


def test_host_replaces_a_token_that_expires_during_use(
    servers: Servers, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the end of its session a report requests no further token; its host may supply one of a new session."""
    life = timedelta(minutes=5)
    monkeypatch.setattr(tokens, "LIFE", life)
    monkeypatch.setattr(tokens, "SESSION", life)
    with visit() as visitor:
        visitor.page.clock.install()
        frame = visitor.open(servers.portal.page("cap-table", tokenId=LUMEN_ID))
        monkeypatch.undo()
        # Six minutes later, for the page and for the service.
        visitor.page.clock.fast_forward(6 * 60_000)
        monkeypatch.setattr(tokens.jwt, "decode", partial(jwt.decode, leeway=-timedelta(minutes=6)))
        sort = frame.locator("#table-head th", has_text="Quantity").get_by_role("button")
        sort.click()
        visitor.report("expired")
        # Loaded data stays readable.
        assert "expired" in frame.inner_text("#notice")
        assert frame.locator("#table-body tr").count() == 25
        assert "POST /embed/token" not in visitor.paths
        visitor.screenshot("state-expired-while-open")
        visitor.page.evaluate("window.handsOver = true")
        sort.click()
        visitor.page.wait_for_function("() => messages.some((message) => message.type === 'report:token-expired')")
        visitor.report()
        assert frame.locator("#notice").is_hidden()
        visitor.forgive(UNAUTHORIZED)


def test_an_open_report_renews_its_token(servers: Servers, visit: Visit) -> None:
    with visit() as visitor:
        visitor.page.clock.install()
        frame = visitor.open(servers.portal.page("wallet-activity", walletId=TREASURY_ID))
        visitor.page.clock.fast_forward(timedelta(minutes=7).total_seconds() * 1000)
        assert "POST /embed/token" not in visitor.paths
        with visitor.page.expect_response("**/embed/token") as renewed:
            visitor.page.clock.fast_forward(timedelta(minutes=1, seconds=5).total_seconds() * 1000)
        assert renewed.value.ok
        fresh = renewed.value.json()["token"]
        with visitor.page.expect_request(lambda request: "/rows" in request.url) as asked:
            frame.locator("#table-head th", has_text="Value").get_by_role("button").click()
        assert asked.value.header_value("authorization") == f"Bearer {fresh}"
    assert any("/embed/" in line for line in servers.api.log)
    assert not any("eyJ" in line for line in servers.api.log)


def test_only_the_surrounding_page_can_supply_tokens(servers: Servers, visit: Visit) -> None:
    with visit() as visitor:
        frame = visitor.open(servers.portal.page("cap-table", tokenId=LUMEN_ID))
        frame.evaluate("window.postMessage({type: 'report:token', token: 'forged'}, '*')")
        visitor.page.evaluate("frame().contentWindow.postMessage({type: 'report:token', token: null}, reports())")
        table = Table(visitor, frame)
        assert table.sort("Quantity") == "descending"
        visitor.page.evaluate("frame().contentWindow.postMessage({type: 'report:token', token: 'forged'}, reports())")
        table.head("Quantity").get_by_role("button").click()
        visitor.report("denied")
        visitor.forgive(UNAUTHORIZED)


def test_revocation_ends_every_open_report(own_servers: Servers, visit: Visit) -> None:
    page = own_servers.portal.page("cap-table", tokenId=LUMEN_ID)
    with visit() as visitor, own_servers.api.client() as client:
        frame = visitor.open(page)
        link = client.get("/v1/reports/cap-table", tokenId=LUMEN_ID)["reportUrl"]
        client.post("/v1/reports/revocations")
        frame.locator("#table-head th", has_text="Quantity").get_by_role("button").click()
        visitor.report("denied")
        assert frame.locator("#content").is_hidden()
        visitor.screenshot("state-revoked")
        visitor.forgive(UNAUTHORIZED)
    with visit() as visitor:
        answer = visitor.page.goto(link)
        assert answer is not None
        assert answer.status == 404
        visitor.forgive("status of 404")
    with visit() as visitor:
        visitor.open(page)  # by a new link


def test_token_of_another_report_is_refused(servers: Servers, visit: Visit) -> None:
    with visit() as visitor, servers.api.client() as client:
        cap_table = client.get("/v1/reports/cap-table", tokenId=LUMEN_ID)["reportUrl"]
        wallet = client.get("/v1/reports/wallet-activity", walletId=TREASURY_ID)["reportUrl"]
        visitor.page.goto(f"{cap_table.partition('#')[0]}#t={token_of(wallet)}")
        frame = visitor.report("denied")
        assert "LMN" not in frame.inner_text("body")
        visitor.screenshot("state-denied")
        visitor.forgive("status of 403")
