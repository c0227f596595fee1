"""Values of quantities; without a linked pair there are none, and the status says why."""

from api.schemas.common import ValueStatus

CURRENCY = "USD"
"""What values are expressed in: the Priced In of the initial release."""


def value_status(amount: str | None) -> ValueStatus:
    """Return why an amount in whole tokens has no value; the marts have none without known decimals."""
    return "UnknownDecimals" if amount is None else "NoPair"
