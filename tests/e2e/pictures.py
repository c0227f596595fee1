"""`python -m tests.e2e.pictures LINK`: make the documents' picture of a cap table.

`LINK` is the link to all reports that a running `make demo` prints. Look at the picture before you commit it.
"""

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.visitor import launch, visiting

_PICTURE = Path(__file__).parents[2] / "docs" / "images" / "cap-table.png"
# All columns of a cap table fit from this width on. Scale and rows keep the file below 150 kB.
_SIZE, _SCALE, _ROWS = {"width": 1280, "height": 1180}, 0.8, 2


def main() -> int:
    """Open the cap table of GOLD from the list of reports, and write its upper part as PNG."""
    with sync_playwright() as playwright, launch(playwright) as browser:
        with visiting(browser, viewport=_SIZE, device_scale_factor=_SCALE, color_scheme="light") as visitor:
            visitor.open(sys.argv[1]).get_by_role("button", name="GOLD").click()
            report = visitor.framed("iframe.report")
            frame = visitor.page.locator("iframe.report").bounding_box()
            row = report.locator("#table-body tr").nth(_ROWS - 1).bounding_box()
            assert frame is not None
            assert row is not None
            height = row["y"] + row["height"] - frame["y"]
            visitor.page.screenshot(path=_PICTURE, full_page=True, clip={**frame, "height": height})
    return 0


if __name__ == "__main__":
    sys.exit(main())
