"""Kinds of providers' errors. Each family classifies the words of its nodes."""

import enum
from dataclasses import dataclass


class FaultKind(enum.Enum):
    """Kind of an error; it decides whether to wait, narrow the request, give up, or use another source."""

    RATE_LIMITED = "wants fewer requests"
    RANGE_REFUSED = "wants a narrower block range"
    TRANSIENT = "fails at present"
    STATE_UNAVAILABLE = "lacks the state or history of the block"
    REFUSED = "refuses the call"


@dataclass(frozen=True)
class Fault:
    """A classified error of a provider."""

    kind: FaultKind
    code: int | None
    message: str
    suggested: tuple[int, int] | None = None
