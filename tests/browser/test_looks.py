"""Looks and use of reports: themes, narrow screens, print, languages, keyboard, and accessibility (axe).

These tests also write the pictures in `build/screenshots`, for people to look at.
"""

import re

import pytest
from playwright.sync_api import Frame

from tests.browser.configured import LUMEN_ID, REPORTS
from tests.browser.conftest import Servers, Visit
from tests.browser.published import publish_register
from tests.browser.reading import Table
from tests.browser.visitor import Visitor

pytestmark = pytest.mark.ci

THEMES = ["light", pytest.param("dark", marks=pytest.mark.release)]
# The reports share their styles and most of their code, so one stands for all with each change.
SOME = [
    "wallet-activity",
    *(pytest.param(one, marks=pytest.mark.release) for one in REPORTS if one != "wallet-activity"),
]
WIDE = {"width": 1400, "height": 1000}
NARROW = {"width": 400, "height": 860}

# True if the background of the report is light, by its relative luminance.
_IS_LIGHT = """() => {
  const colours = [document.body, document.documentElement].map((element) => getComputedStyle(element).backgroundColor);
  const painted = colours.find((colour) => colour !== 'rgba(0, 0, 0, 0)');
  const [red, green, blue] = painted.match(/[\\d.]+/g).map(Number);
  return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255 > 0.6;
}"""


def opened(visitor: Visitor, servers: Servers, report: str, **parameters: str) -> Frame:
    return visitor.open(servers.portal.page(report, **REPORTS[report], **parameters))


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("report", SOME)
def test_axe_finds_no_fault(servers: Servers, visit: Visit, report: str, theme: str) -> None:
    with visit(viewport=WIDE) as visitor:
        frame = opened(visitor, servers, report, theme=theme)
        assert visitor.axe(frame) == []
        visitor.screenshot(f"{report}-{theme}")
        for details in frame.locator("details").all():
            details.locator("summary").first.click()
        assert visitor.axe(frame) == []


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("report", SOME)
def test_narrow_screens(servers: Servers, visit: Visit, report: str, theme: str) -> None:
    with visit(viewport=NARROW, has_touch=True, is_mobile=True) as visitor:
        frame = opened(visitor, servers, report, theme=theme)
        for width in (400, 360):
            visitor.page.set_viewport_size({"width": width, "height": 860})
            assert frame.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
            assert visitor.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
        assert visitor.axe(frame) == []
        visitor.screenshot(f"{report}-{theme}-narrow")


@pytest.mark.parametrize("locale", ["en-US", pytest.param("de-DE", marks=pytest.mark.release)])
@pytest.mark.parametrize(
    ("report", "parts"),
    [
        ("cap-table", ("rank", "holder", "share", "quantity", "value")),
        pytest.param("cap-table-changes", ("holder", "kind", "difference", "shares"), marks=pytest.mark.release),
    ],
)
def test_a_holder_on_a_phone(servers: Servers, visit: Visit, report: str, parts: tuple[str, ...], locale: str) -> None:
    with visit(viewport={"width": 390, "height": 860}, has_touch=True, is_mobile=True, locale=locale) as visitor:
        frame = opened(visitor, servers, report)
        heights = frame.evaluate(
            "() => [...document.querySelectorAll('#table-body tr')].map((row) => row.getBoundingClientRect().height)"
        )
        assert len(heights) == 25
        assert max(heights) <= 72
        first = frame.locator("#table-body tr").first
        for part in parts:
            box, row = first.locator(f".{part}").bounding_box(), first.bounding_box()
            assert box
            assert row
            assert box["x"] >= row["x"]
            assert box["x"] + box["width"] <= row["x"] + row["width"]


# Each table that is wider than its space, and whether its most important column is visible.
_TOO_WIDE = """() => [...document.querySelectorAll('table')].filter((table) => table.offsetParent
  && table.offsetWidth > table.parentElement.clientWidth).map((table) => table.outerHTML.slice(0, 80))"""
MATTERS_MOST = {"cap-table": "check", "cap-table-changes": "difference", "wallet-activity": "value"}


@pytest.mark.parametrize("report", SOME)
def test_columns_are_hidden_before_any_is_cut(servers: Servers, visit: Visit, report: str) -> None:
    with visit(viewport={"width": 1240, "height": 1000}) as visitor:
        frame = opened(visitor, servers, report)
        for width in (1240, 1100, 900, 700, 640):
            visitor.page.set_viewport_size({"width": width, "height": 1000})
            frame.wait_for_function(f"() => innerWidth === {width} && !({_TOO_WIDE})().length")
            assert frame.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
            assert frame.locator(f"#table-body .{MATTERS_MOST[report]}").first.is_visible(), width
        assert "No room for" in frame.inner_text("#dropped")
        visitor.screenshot(f"{report}-640")


@pytest.mark.parametrize(
    ("theme", "preference", "is_dark"),
    [("auto", "light", False), ("light", "dark", False), ("dark", "light", True)],
)
def test_theme(servers: Servers, visit: Visit, theme: str, preference: str, is_dark: bool) -> None:
    with visit(color_scheme=preference) as visitor:
        frame = opened(visitor, servers, "cap-table", theme=theme)
        assert frame.evaluate(_IS_LIGHT) is not is_dark
        if theme == "auto":
            visitor.page.emulate_media(color_scheme="light" if is_dark else "dark")
            frame.wait_for_function(f"(light) => ({_IS_LIGHT})() === light", arg=is_dark)


@pytest.mark.release
def test_numbers_follow_the_language(servers: Servers, visit: Visit) -> None:
    shown = {}
    for locale in ("en-US", "de-DE", "fr-FR", "ar-EG"):
        with visit(locale=locale) as visitor:
            frame = opened(visitor, servers, "cap-table")
            shown[locale] = Table(visitor, frame).rows()[0]["quantity"].text
            if locale == "de-DE":
                visitor.screenshot("cap-table-german")
    english = shown["en-US"]
    assert re.fullmatch(r"\d{1,3}(,\d{3})+\.\d\d", english)
    assert shown["de-DE"] == english.translate(str.maketrans(",.", ".,"))
    assert re.sub(r"\s", " ", shown["fr-FR"]) == english.translate(str.maketrans(",.", " ,"))
    assert len(shown["ar-EG"]) == len(english)


@pytest.mark.parametrize("report", SOME)
def test_print_is_white_complete_and_without_controls(servers: Servers, visit: Visit, report: str) -> None:
    """In every theme, a printed report is white and complete, and has no buttons or fields."""
    with visit(viewport=WIDE) as visitor, servers.api.client() as client:
        link = client.get(f"/v1/reports/{report}", theme="dark", **REPORTS[report])
        frame = visitor.open(link["reportUrl"])
        visitor.page.emulate_media(media="print")
        frame.wait_for_function(_IS_LIGHT)
        for control in ("#search", "#download", "#page-next"):
            assert frame.locator(control).is_hidden(), control
        assert frame.locator("svg:visible").count() > 1
        assert frame.locator("#table-body tr:not(.line)").count() == 25
        visitor.screenshot(f"{report}-print")


# Ranks of the printed rows, and the text on every sheet.
_ON_PAPER = """() => ({
  ranks: [...document.querySelectorAll('.responsive tbody tr')].filter((row) => row.offsetParent)
    .map((row) => row.querySelector('.rank').textContent),
  head: getComputedStyle(document.querySelector('.responsive thead')).display,
  sheet: ['title', 'moment'].map((part) => getComputedStyle(document.documentElement)
    .getPropertyValue(`--sheet-${part}`)
    .replace(/\\\\([0-9a-f]+) /g, (_, code) => String.fromCodePoint(parseInt(code, 16)))),
})"""


@pytest.mark.release
def test_print_has_the_whole_register(own_servers: Servers, visit: Visit) -> None:
    """A printed register has every holder, and a heading with its token and moment on each sheet."""
    count = 5_000
    publish_register(own_servers.world, 2, count)
    with visit(viewport=WIDE) as visitor, own_servers.api.client() as client:
        link = client.get("/v1/reports/cap-table", tokenId=LUMEN_ID)["reportUrl"]
        as_of = client.get(f"/v1/tokens/{LUMEN_ID}/cap-table", limit=1)["asOf"]
        frame = visitor.open(link.replace("#", "&rows=all#"))
        visitor.page.emulate_media(media="print")
        paper = frame.evaluate(_ON_PAPER)
        assert paper["ranks"] == [f"{rank:,}" for rank in range(1, count + 1)]
        assert paper["head"] == "table-header-group"
        assert "Lumen" in paper["sheet"][0]
        assert f"{as_of['blockNumber']:,}" in paper["sheet"][1]
        assert as_of["blockHash"] in paper["sheet"][1]
        sheets = visitor.page.pdf(format="A4", prefer_css_page_size=True).count(b"/Type /Page\n")
        assert count / 60 < sheets < count / 30


def test_print_has_the_requested_rows(servers: Servers, visit: Visit) -> None:
    with visit(viewport=WIDE) as visitor, servers.api.client() as client:
        frame = visitor.open(client.get("/v1/reports/cap-table", tokenId=LUMEN_ID)["reportUrl"])
        table = Table(visitor, frame)
        # Without a printer a browser never reports the end of printing.
        frame.evaluate(
            "() => { window.print = () => { dispatchEvent(new Event('beforeprint'));"
            " window.printed = [...document.querySelectorAll('#table-paper .rank')].map((cell) => cell.textContent);"
            " window.told = document.getElementById('paper-range').textContent;"
            " dispatchEvent(new Event('afterprint')); } }"
        )
        frame.click("#print")
        frame.wait_for_function("() => window.printed")
        assert frame.evaluate("printed") == [str(rank) for rank in range(1, 431)]
        assert frame.evaluate("told") == "1\N{EN DASH}430 of 430 holders"
        table.choose("#filter-reconciliation", "Adjusted")
        # Printed by the browser's own command, the page notes that more rows exist.
        assert "One page of the rows" in str(frame.text_content("#paper-range"))
        frame.evaluate("delete window.printed")
        visitor.page.keyboard.press("Control+p")
        frame.wait_for_function("() => window.printed")
        matching = table.range().split(" of ")[1]
        assert f"{frame.evaluate('printed.length')} holders" == matching


def test_report_works_with_the_keyboard_alone(servers: Servers, visit: Visit) -> None:
    with visit() as visitor:
        frame = opened(visitor, servers, "cap-table")
        table, keyboard = Table(visitor, frame), visitor.page.keyboard

        def reach(selector: str, key: str = "Tab") -> None:
            for _ in range(120):
                if frame.evaluate("(selector) => document.activeElement?.matches(selector) ?? false", selector):
                    outline = frame.evaluate(
                        "() => { const style = getComputedStyle(document.activeElement);"
                        " return style.outlineStyle !== 'none' || style.boxShadow !== 'none'; }"
                    )
                    assert outline, f"{selector} does not show that it has the focus"
                    return
                keyboard.press(key)
            raise AssertionError(f"{selector} is not reached by {key}")

        before = table.range()
        reach("#search")
        table.act(lambda: keyboard.type("desk"))
        assert table.range() == "1-1 of 1 holders" or table.range() == "1-1 of 1 holder"
        table.act(lambda: [keyboard.press("Backspace") for _ in range(4)])
        assert table.range() == before
        reach("#table-head th:nth-child(2) button")
        table.act(lambda: keyboard.press("Enter"))
        assert table.head("Holder").get_attribute("aria-sort") == "ascending"
        reach("#page-next")
        table.act(lambda: keyboard.press("Space"))
        assert table.range().startswith("26-50")
        # The focus does not move, so the next page is one key away.
        assert frame.evaluate("document.activeElement.id") == "page-next"
        reach("#download", "Shift+Tab")
        with visitor.page.expect_download():
            keyboard.press("Enter")


def test_charts_have_labels_and_data_tables(servers: Servers, visit: Visit) -> None:
    with visit() as visitor:
        frame = opened(visitor, servers, "cap-table")
        labels = [chart.get_attribute("aria-label") or "" for chart in frame.locator("[role=img]").all()]
        assert any("Ownership" in label and "other holders" in label for label in labels)
        assert any("Concentration" in label for label in labels)
        assert any("430 holders" in label for label in labels)
        frame.click("#history-data summary")
        assert frame.locator("#history-data tbody tr").count() > 250
        frame.click("button[data-shape]:not([aria-pressed=true])")
        assert frame.locator("button[data-shape][aria-pressed=true]").inner_text() == "Treemap"
        visitor.screenshot("cap-table-treemap")
        assert visitor.axe(frame) == []
