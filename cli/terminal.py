"""Text from nodes, price sources, files and users, made safe for a terminal or a log."""

import re
from typing import Any

from rich.console import Console

# Removes a whole escape sequence, or the first character of an unknown one.
_ESCAPE_SEQUENCE = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]")
# Control characters but tab and newline; zero width; changes of direction; line separators; lone surrogates.
_HIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def plain(text: str) -> str:
    """Return a text without characters that control a terminal, hide text or change its direction."""
    return _HIDDEN.sub("", _ESCAPE_SEQUENCE.sub("", text))


def plain_line(text: str) -> str:
    """Return a text as `plain` does, in one line."""
    return " ".join(plain(text).split("\n"))


class Terminal(Console):
    """Console that prints every text plain; only rich's own styles reach the terminal as control characters."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as `Console.print`."""
        super().print(*(plain(one) if isinstance(one, str) else one for one in objects), **options)
