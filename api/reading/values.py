"""What quantities are worth: by the pair that a token is linked to, at the price of a moment.

A version values by the links that it was made with. Where a token's link has changed since, its old values are not
those of the new pair: until the next cycle there are none. Without a value the status says why.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from api.errors import ApiError
from api.price_rows import PriceAtRow, SumRow, TokenPairRow, TokenPriceRow, ValueRow, WalletTotalRow
from api.reading.prices import prices_at
from api.schemas.common import Decimal, ValueStatus
from api.schemas.values import TotalStatus
from api.serving import Snapshot
from control.subjects import SubjectRow

CURRENCY = "USD"
"""What values are expressed in: the Priced In of the initial release."""

_WORST_FIRST: tuple[TotalStatus, ...] = ("Quarantined", "StalePrice", "NoPrice", "UnknownDecimals")


@dataclass(frozen=True, slots=True)
class Worth:
    """What a quantity is worth at a moment; `price` is the step of the system price that held then."""

    value: Decimal | None
    status: ValueStatus
    price: PriceAtRow | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """How a token's quantities are valued in one version: by a pair, or not, and then `status` says why."""

    pair_key: int | None
    status: ValueStatus


NO_LINK = Link(None, "NoPair")
"""How an asset without a pair is valued."""


def value_status(amount: str | None, without: ValueStatus = "NoPair") -> ValueStatus:
    """Return why an amount in whole tokens has no value; the marts have none without known decimals."""
    return "UnknownDecimals" if amount is None else without


def token_prices(snapshot: Snapshot, tenant_id: str, subject_keys: Collection[int]) -> dict[int, TokenPriceRow]:
    """Return price and capitalization of tokens at their newest covered blocks, by subject key."""
    keys = sorted(subject_keys)
    rows = snapshot.rows("token_prices", TokenPriceRow, tenant_id=tenant_id, subject_keys=keys)
    return {row.subject_key: row for row in rows}


def wallet_totals(snapshot: Snapshot, tenant_id: str, subject_keys: Collection[int]) -> dict[int, WalletTotalRow]:
    """Return what wallets are worth at their newest covered blocks, by subject key."""
    keys = sorted(subject_keys)
    rows = snapshot.rows("wallet_totals", WalletTotalRow, tenant_id=tenant_id, subject_keys=keys)
    return {row.subject_key: row for row in rows}


def token_price(snapshot: Snapshot, token: SubjectRow) -> TokenPriceRow | None:
    """Return price and capitalization of one token."""

    def read() -> TokenPriceRow | None:
        return token_prices(snapshot, token.tenant_id, [token.subject_key]).get(token.subject_key)

    return snapshot.remember(("token-price", token.subject_key), read)


def to_link(token: SubjectRow, known: TokenPriceRow | None) -> Link:
    """Return how a token is valued, by its link in force and by what the version knows of it."""
    if token.pair_key is None:
        return NO_LINK
    if known is None or known.pair_key != token.pair_key:
        return Link(None, "NoPrice")
    return Link(token.pair_key, "Priced")


def read_link(snapshot: Snapshot, token: SubjectRow) -> Link:
    """Return how a token is valued in a version."""
    return to_link(token, token_price(snapshot, token) if token.pair_key is not None else None)


def require_link(token: SubjectRow) -> tuple[str, str, str]:
    """Return id, Priced As and Priced In of the pair that a token is linked to.

    Raises:
        ApiError: 409 `no-linked-pair`.
    """
    if token.pair_id is None or token.priced_as is None or token.priced_in is None:
        raise ApiError(
            409,
            "no-linked-pair",
            f"{token.id} is not linked to a pair, so it has no price; link it by PUT /v1/tokens/{token.id}/priced-as",
        )
    return token.pair_id, token.priced_as, token.priced_in


def read_links(snapshot: Snapshot, subject: SubjectRow) -> Mapping[str, Link]:
    """Return how a wallet's assets are valued, by their addresses; those without a pair are missing."""
    keys = {"subject_key": subject.subject_key, "tenant_id": subject.tenant_id}

    def read() -> Mapping[str, Link]:
        rows = snapshot.rows("token_pairs", TokenPairRow, **keys)
        return {row.token_address: Link(row.pair_key, "Priced") for row in rows}

    return snapshot.remember(("token-pairs", *keys.values()), read)


def worth(snapshot: Snapshot, tenant_id: str, held: Sequence[tuple[str | None, Link, datetime | None]]) -> list[Worth]:
    """Return what quantities in whole tokens (null: unknown decimals) are worth, each at its moment, in their order.

    A moment is null when the time of its block was not stored; then no price can be told for it.
    """
    steps = prices_at(
        snapshot, tenant_id, ((link.pair_key, moment) for _, link, moment in held if link.pair_key and moment)
    )
    prices = [steps.get((link.pair_key, moment)) if link.pair_key and moment else None for _, link, moment in held]
    found = [
        Worth(None, _status(quantity, link, price), price)
        for (quantity, link, _), price in zip(held, prices, strict=True)
    ]
    places = [place for place, one in enumerate(found) if one.status == "Priced"]
    for place, value in zip(
        places, _values(snapshot, [(held[place][0], found[place].price) for place in places]), strict=True
    ):
        found[place] = Worth(value, "Priced", found[place].price)
    return found


def price_status(link: Link, price: PriceAtRow | None) -> ValueStatus:
    """Return why there is no price, or that there is one."""
    if link.pair_key is None:
        return link.status
    return price.price_status if price else "NoPrice"


def sums(snapshot: Snapshot, values: Sequence[tuple[int, str]]) -> dict[int, str]:
    """Return the sums of values, exact, by the places that they are given with."""
    rows = snapshot.rows(
        "sums_of_values", SumRow, places=[place for place, _ in values], amounts=[value for _, value in values]
    )
    return {row.place: row.value for row in rows}


def total_status(statuses: Collection[ValueStatus]) -> TotalStatus:
    """Return the status of a wallet's value, from those of everything that it holds."""
    if not statuses or "Priced" in statuses:
        return "Priced"
    return next((status for status in _WORST_FIRST if status in statuses), "NoPair")


def _status(quantity: str | None, link: Link, price: PriceAtRow | None) -> ValueStatus:
    status = price_status(link, price)
    return status if quantity is not None else value_status(quantity, status)


def _values(snapshot: Snapshot, held: Sequence[tuple[str | None, PriceAtRow | None]]) -> list[str | None]:
    if not held:
        return []
    quantities = [quantity for quantity, _ in held]
    rows = snapshot.rows(
        "values", ValueRow, quantities=quantities, prices=[price.price if price else None for _, price in held]
    )
    return [row.value for row in rows]
