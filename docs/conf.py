"""The documents as a site: `make docs`. They stay plain Markdown, so the navigation is added here."""

from typing import Any

project = "Ledgermart"
root_doc = "docs/index"
include_patterns = ["README.md", "CHANGELOG.md", "docs/**.md"]
extensions = ["myst_parser"]
myst_heading_anchors = 6
html_theme = "furo"
html_title = project
# Pygments warns of Jinja in SQL.
suppress_warnings = ["misc.highlighting_failure"]

_NAVIGATION = {
    "Getting started": ("/README", "getting-started"),
    "Tutorials": ("tutorials/track-a-token", "tutorials/price-it", "tutorials/*"),
    "How-to": ("how-to/*",),
    "Reference": ("reference/*",),
    "Design": ("design", "architecture", "testing", "adding-a-family", "adr/*", "/CHANGELOG"),
}


def setup(app: Any) -> None:
    """Append the navigation to the index page."""
    app.connect("source-read", _add_navigation)


def _add_navigation(_app: Any, name: str, source: list[str]) -> None:
    if name == root_doc:
        source[0] += "".join(
            "\n".join(("\n```{toctree}", ":hidden:", ":glob:", f":caption: {caption}", "", *pages, "```", ""))
            for caption, pages in _NAVIGATION.items()
        )
