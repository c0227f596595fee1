"""Reads the table of a report like a person at the screen, with every digit.

Cells show rounded numbers; the tooltip has the exact number, or the cell itself if it is not rounded.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from playwright.sync_api import Frame, Locator

from tests.browser.visitor import Visitor

Row = dict[str, Any]

_ROWS = """() => [...document.querySelectorAll('#table-body tr:not(.line)')].map((row) =>
  Object.fromEntries([...row.cells].map((cell) => [cell.classList[0], {
    text: cell.textContent,
    title: cell.querySelector('[title]')?.title ?? null,
    full: cell.querySelector('[data-full]')?.dataset.full ?? null,
    name: cell.querySelector('bdi.name')?.textContent ?? null,
  }])))"""


@dataclass(frozen=True)
class Cell:
    """One cell: its text, its tooltip, the full address or hash, and the name."""

    text: str
    title: str | None
    full: str | None
    name: str | None

    @property
    def number(self) -> Decimal | None:
        """The exact number, read in en-US format; None without one."""
        return None if self.text.startswith("—") else parsed(self.title or self.text)


_PLAIN = str.maketrans({"\N{MINUS SIGN}": "-", ",": None, "$": None, "%": None, "+": None})


def parsed(text: str) -> Decimal:
    """Parse an en-US number, with or without a currency or percent sign."""
    return Decimal(text.translate(_PLAIN).strip())


class Table:
    """The table of an open report, and its controls."""

    def __init__(self, visitor: Visitor, frame: Frame) -> None:
        self._visitor = visitor
        self._frame = frame

    def rows(self) -> list[dict[str, Cell]]:
        """Return the rows of the current page, by the columns' keys."""
        return [{key: Cell(**cell) for key, cell in row.items()} for row in self._frame.evaluate(_ROWS)]

    def column(self, key: str) -> list[Cell]:
        """Return one column of the current page."""
        return [row[key] for row in self.rows()]

    def range(self) -> str:
        """Return the pager's text, such as `1-25 of 430 holders`."""
        return self._frame.inner_text("#page-range").replace("\N{EN DASH}", "-")

    def act(self, action: Callable[[], object]) -> None:
        """Do something that changes the rows, and wait for the new rows."""
        with self._visitor.page.expect_response(lambda response: "/rows" in response.url) as answer:
            action()
        assert answer.value.ok, answer.value.text()
        self._frame.wait_for_function("() => !document.getElementById('table-body').hasAttribute('aria-busy')")

    def head(self, label: str) -> Locator:
        """Return the header cell of a column."""
        return self._frame.locator("#table-head th", has_text=label)

    def sort(self, label: str) -> str:
        """Click a column's header; return the sort direction that it then shows."""
        self.act(self.head(label).get_by_role("button").click)
        return str(self.head(label).get_attribute("aria-sort"))

    def search(self, text: str) -> None:
        """Type into the search field."""
        self.act(lambda: self._frame.fill("#search", text))

    def choose(self, select: str, label: str) -> None:
        """Choose an option of a filter or the page size."""
        self.act(lambda: self._frame.select_option(select, label=label))

    def turn(self, where: str) -> None:
        """Turn to the first, previous, next or last page."""
        self.act(lambda: self._frame.click(f"#page-{where}"))

    def download(self) -> str:
        """Download the CSV of the current filter and sort order."""
        with self._visitor.page.expect_download() as download:
            self._frame.click("#download")
        assert download.value.failure() is None
        return Path(download.value.path()).read_text(encoding="utf-8")


def check_every_sort_and_page(
    table: Table,
    sorts: Mapping[str, Callable[[Row], Any]],
    rows: Sequence[Row],
    page: int,
    shown: Callable[[Table], Any],
    true: Callable[[list[Row]], Any],
) -> None:
    """Sort by each column in both directions, and compare its first, next and last page with the sorted rows.

    Args:
        table: the table.
        sorts: sort key of each column, by its label.
        rows: all rows.
        page: number of rows on a page.
        shown: reads the visible rows of the table.
        true: returns the expected text of rows.
    """
    for label, key in sorts.items():
        directions = set()
        for _ in range(2):
            direction = table.sort(label)
            directions.add(direction)
            ordered = sorted(rows, key=key, reverse=direction == "descending")
            assert shown(table) == true(ordered[:page]), (label, direction)
            table.turn("next")
            assert shown(table) == true(ordered[page : 2 * page]), (label, direction)
            table.turn("last")
            assert shown(table) == true(ordered[len(ordered) // page * page :]), (label, direction)
        assert directions == {"ascending", "descending"}


def walked(pages: Any) -> list[dict[str, Any]]:
    """Return the rows of all pages of the JSON API."""
    return [row for page in pages for row in page["data"]]


def decimal_or_none(text: str | None) -> Decimal | None:
    """Parse a number of the JSON API."""
    return None if text is None else Decimal(text)
