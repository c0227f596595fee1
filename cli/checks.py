"""One line of the output of `ledgermart doctor`."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "note", "wrong"]


@dataclass(frozen=True)
class Check:
    """One line of the output; `note` is information, `wrong` needs a fix."""

    check: str
    verdict: Verdict
    detail: str
