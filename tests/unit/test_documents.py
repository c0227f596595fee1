"""The documents say what is true: settings and commands are listed as the code has them."""

import re
from pathlib import Path

from cli.main import main
from control.settings import CHECKOUT, VARIABLES

_DOCS = CHECKOUT / "docs"


def test_every_setting_is_documented_with_its_default() -> None:
    text = (_DOCS / "reference" / "settings.md").read_text()
    for variable in VARIABLES:
        assert f"| `{variable.name}` | `{variable.default}` | {variable.meaning} |" in text


def test_every_command_is_documented() -> None:
    text = (_DOCS / "reference" / "commands.md").read_text()
    for name in main.commands:
        assert f"`ledgermart {name}" in text


def test_links_between_documents_lead_somewhere() -> None:
    for document in (CHECKOUT / "README.md", CHECKOUT / "CHANGELOG.md", *_DOCS.rglob("*.md")):
        for target in document.read_text().split("](")[1:]:
            link, _, heading = target.split(")")[0].partition("#")
            if not link.startswith("http"):
                target_path = Path(document).parent / link if link else document
                assert target_path.exists(), f"{document}: {link}"
                assert not heading or heading in _headings(target_path), f"{document}: {link}#{heading}"


def _headings(document: Path) -> set[str]:
    """The names by which links reach a document's headings."""
    lines = [line.lstrip("#").strip().lower() for line in document.read_text().splitlines() if line.startswith("#")]
    return {re.sub(r"[^a-z0-9 _-]", "", line).replace(" ", "-") for line in lines}
