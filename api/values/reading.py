"""Values of quantities, by the pair that a token is linked to, at the price of a moment.

A version contains values by the links at the time of its build. If a token's link has changed since, it has no value
until the next cycle, because the old values are those of another pair. Without a value, the status gives the reason.
"""

import decimal
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from api.engine.serving import Snapshot
from api.prices.reading import prices_at
from api.prices.rows import PriceAtRow
from api.schema import Decimal, ValueStatus
from api.subjects.moments import View
from api.values.rows import LinkedAssetRow, ProductRow, TokenPairRow, TokenPriceRow, UsdPairRow, WalletTotalRow
from api.values.schemas import TotalStatus
from control.networks.addresses import InvalidAddress
from control.networks.families import codec_for
from control.pricing.links import LinksInForce, UsdPair, pairs_by_symbol
from control.subjects import SubjectRow

CURRENCY = "USD"
"""Currency of values: the only Priced In of the initial release."""

_DIGITS = 512
"""Enough digits for any product: quantities have up to 78 digits and 255 decimals, and prices have 38 digits."""

_EXACT = decimal.Context(prec=_DIGITS, traps=[decimal.Inexact, decimal.InvalidOperation])

_WORST_FIRST: tuple[TotalStatus, ...] = (
    "UnknownTime",
    "Quarantined",
    "StalePrice",
    "NoPrice",
    "UnknownDecimals",
    "NotCovered",
)


@dataclass(frozen=True, slots=True)
class Valuation:
    """The value of a quantity at a moment; `price` is the step of the system price at that moment."""

    value: Decimal | None
    status: ValueStatus
    price: PriceAtRow | None = None


@dataclass(frozen=True, slots=True)
class Rate:
    """How all quantities of a token are valued at a moment; `price` is None where the status says why."""

    price: str | None
    status: ValueStatus


@dataclass(frozen=True, slots=True)
class Link:
    """The pair that values a token's quantities in one version; without a pair, `status` gives the reason."""

    pair_key: int | None
    status: ValueStatus


NO_LINK = Link(None, "NoPair")
"""Link of an asset without a pair."""


def value_status(amount: str | None, without: ValueStatus = "NoPair") -> ValueStatus:
    """Return the reason why an amount has no value; the amount in whole tokens is None if decimals are unknown."""
    return "UnknownDecimals" if amount is None else without


def token_prices(snapshot: Snapshot, tenant_id: str, subject_keys: Collection[int]) -> dict[int, TokenPriceRow]:
    """Return prices and capitalizations of tokens at their newest covered blocks, by subject key."""
    keys = sorted(subject_keys)
    rows = snapshot.rows("token_prices", TokenPriceRow, tenant_id=tenant_id, subject_keys=keys)
    return {row.subject_key: row for row in rows}


def wallet_totals(snapshot: Snapshot, wallets: Sequence[SubjectRow]) -> dict[int, WalletTotalRow]:
    """Return the values of a tenant's wallets at their newest covered blocks, by subject key."""
    if not wallets:
        return {}
    families = {wallet.subject_key: wallet.family for wallet in wallets}
    keys = sorted(families)
    rows = snapshot.rows("wallet_totals", WalletTotalRow, tenant_id=wallets[0].tenant_id, subject_keys=keys)
    return {row.subject_key: _present_names(row, families[row.subject_key]) for row in rows}


def _present_names(row: WalletTotalRow, family: str) -> WalletTotalRow:
    unpriced, omitted = (present_assets(family, names) for names in (row.unpriced, row.change24h_omitted))
    return replace(row, unpriced=unpriced, change24h_omitted=omitted)


def present_assets(family: str, names: Iterable[str]) -> list[str]:
    """Return names of assets for answers: symbols unchanged, stored addresses in the family's canonical form."""
    codec = codec_for(family)

    def present(name: str) -> str:
        try:
            return codec.present(codec.parse(name))
        except InvalidAddress:
            return name

    return [present(name) for name in names]


def token_price(snapshot: Snapshot, token: SubjectRow) -> TokenPriceRow | None:
    """Return price and capitalization of one token."""

    def read() -> TokenPriceRow | None:
        return token_prices(snapshot, token.tenant_id, [token.subject_key]).get(token.subject_key)

    return snapshot.get_or_compute(("token-price", token.subject_key), read)


def to_link(token: SubjectRow, known: TokenPriceRow | None) -> Link:
    """Return the link of a token: its pair in force, if the version values the token by the same pair."""
    if token.pair_key is None:
        return NO_LINK
    if known is None or known.pair_key != token.pair_key:
        return Link(None, "NoPrice")
    return Link(token.pair_key, "Priced")


def read_link(snapshot: Snapshot, token: SubjectRow) -> Link:
    """Return the link of a token in a version."""
    return to_link(token, token_price(snapshot, token) if token.pair_key is not None else None)


@dataclass(frozen=True, slots=True)
class WalletLinks:
    """Links of a wallet's assets in one version, by stored address.

    `unlinked` assets have a pair in the version, but none now. `relinked` assets now have another pair than in the
    version.
    """

    links: Mapping[str, Link]
    unlinked: tuple[str, ...]
    relinked: tuple[str, ...]

    def of(self, address: str) -> Link:
        """Return the link of an asset."""
        return self.links.get(address, NO_LINK)

    @property
    def changed(self) -> tuple[str, ...]:
        """The assets with a link that differs from that of the version."""
        return self.unlinked + self.relinked


def read_links(snapshot: Snapshot, view: View) -> WalletLinks:
    """Return the links of a wallet's assets, from the links in force and those of the version."""

    def read() -> Mapping[str, int]:
        return {row.token_address: row.pair_key for row in snapshot.rows("token_pairs", TokenPairRow, **view.keys)}

    known, in_force = snapshot.get_or_compute(("token-pairs", *view.keys.values()), read), view.pairs
    return WalletLinks(
        {
            address: Link(pair_key, "Priced") if known.get(address) == pair_key else Link(None, "NoPrice")
            for address, pair_key in in_force.items()
        },
        tuple(sorted(known.keys() - in_force.keys())),
        tuple(sorted(address for address, pair_key in in_force.items() if known.get(address) != pair_key)),
    )


def changed_assets(snapshot: Snapshot, tenant_id: str, links: LinksInForce) -> tuple[str, ...]:
    """Return the stored addresses of assets with a link that may have changed since the version, for any wallet."""

    def read() -> tuple[set[LinkedAssetRow], dict[str, int]]:
        tokens = snapshot.rows("links_of_tokens", LinkedAssetRow, tenant_id=tenant_id)
        pairs = snapshot.rows("usd_pairs", UsdPairRow, tenant_id=tenant_id, currency=CURRENCY)
        return set(tokens), pairs_by_symbol([UsdPair(row.pair_key, row.priced_as, row.price_type) for row in pairs])

    tokens, pairs = snapshot.get_or_compute(("links", tenant_id), read)
    in_force = {LinkedAssetRow(token.subject_key, token.address, token.pair_key) for token in links.tokens}
    symbols = {symbol for symbol, _ in pairs.items() ^ pairs_by_symbol(links.pairs).items()}
    common = {
        address
        for network in links.networks.values()
        for address, symbol in network.common_symbols.items()
        if symbol in symbols
    }
    return tuple(sorted({row.token_address for row in tokens ^ in_force} | common))


def rate_at(snapshot: Snapshot, token: SubjectRow, decimals: int | None, moment: datetime | None) -> Rate:
    """Return the price and status of a token's quantities at a moment; `decimals` is None if they are unknown."""
    link = read_link(snapshot, token)
    moments = [(link.pair_key, moment)] if link.pair_key is not None and moment is not None else []
    price = next(iter(prices_at(snapshot, token.tenant_id, moments).values()), None)
    status = price_status(link, price, moment)
    return Rate(price.price if price else None, "UnknownDecimals" if decimals is None else status)


def value_quantities(
    snapshot: Snapshot, tenant_id: str, held: Sequence[tuple[str | None, Link, datetime | None]]
) -> list[Valuation]:
    """Return the values of quantities in whole tokens (None: unknown decimals), each at its moment, in their order.

    A moment is None if the time of its block was not stored; then it has no price.
    """
    steps = prices_at(
        snapshot, tenant_id, ((link.pair_key, moment) for _, link, moment in held if link.pair_key and moment)
    )
    prices = [steps.get((link.pair_key, moment)) if link.pair_key and moment else None for _, link, moment in held]
    values = _products(
        snapshot,
        [
            (quantity, price.price) if quantity is not None and price and price.price else None
            for (quantity, _, _), price in zip(held, prices, strict=True)
        ],
    )
    return [
        Valuation(value, value_status(quantity, price_status(link, price, moment)), price)
        for (quantity, link, moment), price, value in zip(held, prices, values, strict=True)
    ]


def _products(snapshot: Snapshot, factors: Sequence[tuple[str, str] | None]) -> list[str | None]:
    """Return the products of quantities and prices, rounded like `marts.to_value`, in their order."""
    known = [one for one in factors if one]
    if not known:
        return [None] * len(factors)
    quantities, prices = zip(*known, strict=True)
    rows = snapshot.rows("products", ProductRow, quantities=quantities, prices=prices)
    values = iter([row.value for row in rows])
    return [next(values) if one else None for one in factors]


def price_status(link: Link, price: PriceAtRow | None, moment: datetime | None) -> ValueStatus:
    """Return the status of a price at a moment; the moment is None if its time was not stored."""
    if link.pair_key is None:
        return link.status
    if moment is None:
        return "UnknownTime"
    return price.price_status if price else "NoPrice"


def amount_text(raw: int, decimals: int | None) -> str:
    """Convert base units to exact text in whole tokens; keep base units if the decimals are unknown."""
    return _text(decimal.Decimal(raw).scaleb(-(decimals or 0), _EXACT))


def whole_tokens(raw: str | None, decimals: int | None) -> str | None:
    """Convert base units to exact text in whole tokens; return None if the quantity or the decimals are unknown."""
    return None if raw is None or decimals is None else amount_text(int(raw), decimals)


def total(values: Iterable[str]) -> str:
    """Return the exact sum of values."""
    found = decimal.Decimal(0)
    for value in values:
        found = _EXACT.add(found, decimal.Decimal(value))
    return _text(found)


def total_status(statuses: Collection[TotalStatus]) -> TotalStatus:
    """Return the status of a wallet's value from the statuses of its positions."""
    if not statuses or "Priced" in statuses:
        return "Priced"
    return next((status for status in _WORST_FIRST if status in statuses), "NoPair")


def _text(number: decimal.Decimal) -> str:
    """Return canonical text: no exponent, no trailing zeros."""
    if not number:
        return "0"  # never "-0"
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
