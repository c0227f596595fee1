"""The rows of the table of faults: their verdicts, their text, and the command that a message names."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.faults.load import REFUSED

_COMMAND = re.compile(
    r"`ledgermart ((?:restore|cycle --rebuild|cycle --new-warehouse|network reset|init --tenant)\b[^`]*)`"
)
_HEADERS = ("fault", "requests", "failed, by status", "refused", "rows lost", "seconds to recover", "manual steps", "")
# A second command is needed: the first one has not helped, or no message named one.
_MOST_STEPS = 1


@dataclass(frozen=True)
class Row:
    """Effects of one fault.

    Attributes:
        fault: its name.
        outcomes: of the requests from its beginning until the service had recovered.
        lost: rows that are missing or doubled; None: the service could not be asked.
        seconds: from the end of the fault, or from the loss of a file, until the service had recovered; None: never.
        steps: commands that were run by hand.
        note: reason why the fault was not done here, or did not end well.
    """

    fault: str
    outcomes: Counter[str] = field(default_factory=Counter)
    lost: int | None = None
    seconds: float | None = None
    steps: tuple[str, ...] = ()
    note: str = ""
    is_done: bool = True

    @property
    def is_good(self) -> bool:
        """True if no row was lost and at most one command was needed; also if the fault was not done here."""
        return not self.is_done or (self.lost == 0 and self.seconds is not None and len(self.steps) <= _MOST_STEPS)

    def cells(self) -> tuple[str, ...]:
        """Return the texts of the row."""
        if not self.is_done:
            return (self.fault, "", "", "", "", "", "", f"not done here: {self.note}")
        failed = {outcome: count for outcome, count in sorted(self.outcomes.items()) if outcome not in ("ok", REFUSED)}
        return (
            self.fault,
            str(self.outcomes.total()),
            ", ".join(f"{count} of {outcome}" for outcome, count in failed.items()) or "0",
            str(self.outcomes[REFUSED]),
            "unknown" if self.lost is None else str(self.lost),
            "never" if self.seconds is None else f"{self.seconds:.0f}",
            ", ".join(f"`ledgermart {step}`" for step in self.steps) or "0",
            self.note if self.is_good else f"**FAILED** {self.note}".strip(),
        )


def named_command(text: str) -> str | None:
    """Return the first command that a message names as a repair, without `ledgermart`; None if there is none.

    >>> named_command("damaged; restore a backup with `ledgermart restore`, or `ledgermart cycle --rebuild`")
    'restore'
    """
    found = _COMMAND.search(" ".join(text.split()))
    return found[1] if found else None


def as_markdown(rows: Iterable[Row]) -> str:
    """Return the table."""
    lines = [_HEADERS, tuple("---" for _ in _HEADERS), *(row.cells() for row in rows)]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
