"""`python -m tests.prose`: report hard sentences in texts for users. Exit code 1 when there are any.

It reads the documents, the descriptions of dbt and OpenAPI, and the help of the commands. `tests/prose_allowed.txt`
lists the exceptions, as printed here: sentences that would be worse or wrong in other words.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import yaml
from markdown_it import MarkdownIt

from api.app import openapi_document
from cli.main import main as ledgermart
from control.settings import load_settings

_CHECKOUT = Path(__file__).parents[1]
_ALLOWED = Path(__file__).with_name("prose_allowed.txt")
_MOST_WORDS = 28
_FOR_ENGINEERS = {"architecture.md", "design.md", "adr"}
_OLDER_RELEASES = "\n## [0.2.0]"  # written before this check
_NOT_PROSE = {"default", "enum", "example", "examples", "pattern"}
_VERBS = "is|are|was|were|has|have|had|remains?|changed?|comes?|goes?|takes?|it|they|an?|the|somebody|nobody"
_FAULTS = {
    "begins with a clause: name the thing": r"^(what|who(m|se|ever)?|whatever|whether|nor|not (the|an?|of))\b",
    "has a clause in place of a noun": rf"\bwhat(ever)? ({_VERBS})\b",
    "has a person in place of a thing": r"\b(nobody|somebody|everybody|whoever)\b",
    "has a word that the field does not use": r"\b(anew|lest|oftener|thereof|at work|(is|are) (told|owed)|gets? on"
    r"|told apart|goes on with|comes? to (its|their|an?) end|comes? to lie|by (another|the same) road)\b",
}


def faults(sentence: str) -> Iterator[str]:
    """Yield the reasons for which a sentence may be hard to read; questions may begin with a question word."""
    if (words := len(sentence.split())) > _MOST_WORDS:
        yield f"has {words} words, more than {_MOST_WORDS}"
    if words > 2 and not sentence.endswith("?"):
        yield from (fault for fault, pattern in _FAULTS.items() if re.search(pattern, sentence, re.IGNORECASE))


def sentences(markdown: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each sentence outside code blocks; inline code becomes one word."""
    line, words = 1, {"code_inline": "code", "softbreak": " ", "hardbreak": " "}
    for token in MarkdownIt().enable("table").parse(markdown):
        line = token.map[0] + 1 if token.map else line
        text = "".join(words.get(child.type, child.content) for child in token.children or ())
        yield from ((line, found) for found in re.split(r"(?<=[.!?])\s+", " ".join(text.split())) if found)


def texts() -> Iterator[tuple[str, str]]:
    """Yield the place and the Markdown of each text that users read."""
    for page in (_CHECKOUT / "README.md", *sorted((_CHECKOUT / "docs").rglob("*.md"))):
        if not _FOR_ENGINEERS & set(page.parts):
            yield str(page.relative_to(_CHECKOUT)), page.read_text()
    yield "CHANGELOG.md", (_CHECKOUT / "CHANGELOG.md").read_text().partition(_OLDER_RELEASES)[0]
    for file in sorted((_CHECKOUT / "dbt_project" / "models").rglob("*.yml")):
        yield from _descriptions(yaml.safe_load(file.read_text()), str(file.relative_to(_CHECKOUT)))
    yield from _descriptions(openapi_document(load_settings({})), "OpenAPI")
    yield from _helps(ledgermart, "ledgermart")


def _descriptions(node: Any, place: str) -> Iterator[tuple[str, str]]:
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        if key in ("description", "summary") and isinstance(value, str):
            yield place, value
        elif key not in _NOT_PROSE:
            yield from _descriptions(value, f"{place}/{value.get('name', key) if isinstance(value, dict) else key}")


def _helps(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    yield name, command.help or ""
    yield from ((f"{name} {option.opts[0]}", getattr(option, "help", None) or "") for option in command.params)
    for child, subcommand in getattr(command, "commands", {}).items():
        yield from _helps(subcommand, f"{name} {child}")


def main() -> None:
    """Print each hard sentence that is not allowed, and each allowed sentence that no text contains."""
    read = [(f"{place}:{line}", sentence) for place, text in texts() for line, sentence in sentences(text)]
    allowed = _ALLOWED.read_text().splitlines()
    found = [
        f"{place}: {'; '.join(reasons)}: {sentence}"
        for place, sentence in read
        if (reasons := list(faults(sentence))) and sentence not in allowed
    ]
    gone = set(allowed) - {sentence for _, sentence in read}
    sys.exit("\n".join([*found, *(f"{_ALLOWED.name}: no text has: {sentence}" for sentence in gone)]) or None)


if __name__ == "__main__":
    main()
