"""`python -m tests.links`: report the dead links of the documents. Exit code 1 when there are any."""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

_CHECKOUT = Path(__file__).parents[1]
_EXTERNAL = re.compile(r"[a-z]+:", re.IGNORECASE)


def documents() -> list[Path]:
    """Return the Markdown files of the checkout that people read."""
    return [path for pattern in ("*.md", "docs/**/*.md", "reports/*.md") for path in sorted(_CHECKOUT.glob(pattern))]


def dead_links(paths: Iterable[Path]) -> Iterator[str]:
    """Yield a line for each link or image that leads to no file, or to no heading of its file.

    Links to other hosts are not followed.
    """
    for path in paths:
        for target in _targets(path):
            name, _, anchor = target.partition("#")
            found = path.parent / name if name else path
            if _EXTERNAL.match(target):
                continue
            if not found.exists():
                yield f"{path}: {target}: no such file"
            elif anchor and anchor not in _anchors(found):
                yield f"{path}: {target}: no such heading"


def _targets(path: Path) -> Iterator[str]:
    for token in _inline(path):
        target = token.attrs.get("href") or token.attrs.get("src")
        if isinstance(target, str):
            yield target


def _inline(path: Path) -> Iterator[Token]:
    for token in _parse(path):
        yield from token.children or ()


def _anchors(path: Path) -> set[str]:
    """Return the names that GitHub gives to the headings: a repeated one ends with a number."""
    names: list[str] = []
    seen: Counter[str] = Counter()
    tokens = _parse(path)
    for opening, content in pairwise(tokens):
        if opening.type == "heading_open":
            text = "".join(token.content for token in content.children or ())
            name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            names.append(f"{name}-{seen[name]}" if seen[name] else name)
            seen[name] += 1
    return set(names)


def _parse(path: Path) -> list[Token]:
    return MarkdownIt().enable("table").parse(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit("\n".join(dead_links(documents())) or None)
