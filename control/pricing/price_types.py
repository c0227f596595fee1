"""The types of prices, the same for pairs, supported pairs and sources."""

from enum import StrEnum
from typing import Literal

from control.errors import Invalid


class PriceType(StrEnum):
    """Type of a price."""

    ASK = "Ask"
    BID = "Bid"
    TRADE = "Trade"
    MARKET = "Market"
    NAV = "NAV"


PriceTypeName = Literal["Ask", "Bid", "Trade", "Market", "NAV"]
"""The same types, for structs that list them in their own documentation."""

PAIR_FIELDS = ("pricedAs", "pricedIn", "priceType")
"""JSON names of the values that no two pairs of one tenant, or of one manual source, have in common."""


def check_price_type(field: str, text: str) -> PriceType:
    """Return the type of this name.

    Raises:
        Invalid: on the field, there is none.
    """
    if text not in set(PriceType):
        raise Invalid(field, "unknown-price-type", f"{field} is {text[:40]!r}; use one of {', '.join(PriceType)}")
    return PriceType(text)
