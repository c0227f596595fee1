"""The documents say what is true: settings and commands are listed as the code has them."""

from pathlib import Path

from cli.main import main
from control.settings import CHECKOUT, VARIABLES
from tests.links import dead_links

_DOCS = CHECKOUT / "docs"


def test_every_setting_is_documented_with_its_default() -> None:
    text = (_DOCS / "reference" / "settings.md").read_text()
    for variable in VARIABLES:
        assert f"| `{variable.name}` | `{variable.default}` | {variable.meaning} |" in text


def test_every_command_is_documented() -> None:
    text = (_DOCS / "reference" / "commands.md").read_text()
    for name in main.commands:
        assert f"`ledgermart {name}" in text


def test_link_to_a_missing_file_image_or_heading_is_reported(tmp_path: Path) -> None:
    other = tmp_path / "other.md"
    other.write_text("# The `id`, twice\n\n## Same\n\n## Same\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n\n[good](other.md#the-id-twice) [good](other.md#same-1) [good](#page) [good](https://elsewhere.example)\n\n"
        "| [gone](gone.md) | ![gone](gone.png) |\n| --- | --- |\n| [bad](other.md#same-2) | [bad](#pages) |\n\n"
        "`[code](gone.md)`\n"
    )
    assert list(dead_links([other, page])) == [
        f"{page}: gone.md: no such file",
        f"{page}: gone.png: no such file",
        f"{page}: other.md#same-2: no such heading",
        f"{page}: #pages: no such heading",
    ]
