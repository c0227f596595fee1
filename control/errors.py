"""The errors that rules of the control store raise.

ControlError
├── Invalid            a value that breaks a rule; names the JSON field           (HTTP 422)
│   └── Unparseable    a text that cannot be parsed                               (HTTP 400)
├── InvalidValues      several such values                                        (HTTP 422)
├── NotFound           no such object for this tenant                             (HTTP 404)
├── Conflict           contradicts what is stored                                 (HTTP 409)
├── Unauthenticated    no valid key                                               (HTTP 401)
├── Denied             a valid key whose role is too low                          (HTTP 403)
└── StoreUnavailable   the database cannot be reached, is locked or not migrated  (HTTP 503)
    └── StoreLost      the database is missing or damaged                         (HTTP 503)

Errors of the environment are `control.settings.SettingsError`, of network definitions
`control.networks.definitions.NetworksError`. How an error looks on the wire does not go here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

_MOST_SHOWN = 60


def shortened(text: str) -> str:
    """Return the beginning of a text of a request, as far as errors show it."""
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


class ControlError(Exception):
    """Base of every error a rule of the control store raises; `detail` is a sentence for people."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class Invalid(ControlError):
    """A value that breaks a rule. `field` is its JSON name, `code` a kebab-case kind, `detail` says the fix."""

    def __init__(self, field: str, code: str, detail: str) -> None:
        super().__init__(detail)
        self.field = field
        self.code = code


class Unparseable(Invalid):
    """A text with a wrong form, such as a malformed moment."""


class InvalidValues(ControlError):
    """Several values that break rules, such as in rows of one request; each names its place by `field`."""

    def __init__(self, errors: Sequence[Invalid]) -> None:
        super().__init__("; ".join(error.detail for error in errors))
        self.errors = tuple(errors)


class NotFound(ControlError):
    """No object of this kind and id (or name) exists for the tenant."""

    def __init__(self, kind: str, identifier: str) -> None:
        super().__init__(f"no {kind} {shortened(identifier)!r}")
        self.kind = kind
        self.identifier = identifier


@dataclass(frozen=True, slots=True)
class PairChoice:
    """A pair that could be meant; `price_sources` are ids, the one asked first in front."""

    pair_id: str
    price_type: str
    price_sources: tuple[str, ...]


class Conflict(ControlError):
    """The request contradicts stored objects.

    Args:
        code: kebab-case kind.
        detail: says the fix.
        existing_id: names the object in the way, where there is one.
        pairs: those of which the request must name one.
        fields: JSON names of the values that conflict, with their places in lists, such as 'priceSources/0'.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        existing_id: str | None = None,
        pairs: Sequence[PairChoice] = (),
        fields: Sequence[str] = (),
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.existing_id = existing_id
        self.pairs = tuple(pairs)
        self.fields = tuple(fields)


class Unauthenticated(ControlError):
    """The bearer token is missing, malformed, unknown or revoked; which of them is not told."""


class Denied(ControlError):
    """The key is valid, but its role may not do this."""


class StoreUnavailable(ControlError):
    """The control store cannot be used now: not reachable, locked too long, or not migrated.

    Args:
        detail: for clients; names neither host nor file.
        cause: the text of the database driver, for the operator alone.
    """

    def __init__(self, detail: str, cause: str | None = None) -> None:
        super().__init__(detail)
        self.cause = cause

    def __str__(self) -> str:
        return self.detail if self.cause is None else f"{self.detail}: {self.cause}"


class StoreLost(StoreUnavailable):
    """The control store is missing or damaged, and must be restored.

    Args:
        cause: names the file and the fix, for the operator alone.
    """

    def __init__(self, cause: str) -> None:
        super().__init__("the control store is missing or damaged", cause)

    def __str__(self) -> str:
        return str(self.cause)
