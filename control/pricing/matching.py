"""From a pair and one of its sources to the markets that give its price: the one place that decides it.

Pure: no store, no marts, no source. The API asks when a pair is configured, the pipeline in each cycle.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

_MOST_CANDIDATES = 20
"""Markets that an ambiguous answer names."""


# What buys at the ask sells at the bid: 1 / price turns each into the other.
_INVERTED_TYPES = {"Ask": "Bid", "Bid": "Ask"}


class MappingStatus(StrEnum):
    """Status of the search for a pair's price at a source; best first."""

    RESOLVED = "Resolved"
    PENDING = "Pending"
    MARKET_GONE = "MarketGone"
    NO_MARKET = "NoMarket"
    AMBIGUOUS = "Ambiguous"
    UNSUPPORTED = "Unsupported"


class Derivation(StrEnum):
    """Derivation of a pair's price from the markets of a source."""

    DIRECT = "Direct"
    INVERSE = "Inverse"
    BRIDGE = "Bridge"
    MANUAL = "Manual"


class Market(Protocol):
    """A spot market as a source lists it: codes as unified across sources, and the source's own."""

    @property
    def market_id(self) -> str: ...
    @property
    def base(self) -> str: ...
    @property
    def quote(self) -> str: ...
    @property
    def base_code(self) -> str: ...
    @property
    def quote_code(self) -> str: ...
    @property
    def is_active(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class ItemName:
    """A priced item at one source: the tenant's symbol, and the mapping symbol where one is configured."""

    symbol: str
    mapped: str | None = None

    @property
    def text(self) -> str:
        """All symbols of the search at the source."""
        return self.mapped or self.symbol


@dataclass(frozen=True, slots=True)
class Wanted:
    """The search of a pair at one source; `bridge` and `allow_inverse` as the pair says."""

    priced_as: ItemName
    priced_in: ItemName
    price_type: str
    allow_inverse: bool = False
    bridge: ItemName | None = None

    @property
    def texts(self) -> frozenset[str]:
        """All that may be looked for in the source's market list."""
        items = (self.priced_as, self.priced_in, self.bridge)
        return frozenset(item.text for item in items if item is not None)


class Leg(NamedTuple):
    """One market of a route, and the type of its prices; an inverted one counts as 1 / price."""

    market_id: str
    price_type: str
    is_inverted: bool


@dataclass(frozen=True, slots=True)
class Route:
    """Where the price comes from: one leg, two of a bridge (a product), or a manual source's supported pair."""

    derivation: Derivation
    legs: tuple[Leg, ...] = ()
    supported_pair_key: int | None = None

    @property
    def status(self) -> MappingStatus:
        """Always resolved."""
        return MappingStatus.RESOLVED


@dataclass(frozen=True, slots=True)
class Unresolved:
    """Why there is no route, a sentence for people about it, and the markets it speaks of."""

    status: MappingStatus
    detail: str
    candidates: tuple[Market, ...] = ()


class MarketIndex:
    """Markets of one source, found by their codes.

    Args:
        markets: any order; those with other codes than a pair asks for do no harm.
    """

    def __init__(self, markets: Iterable[Market]) -> None:
        self._by_codes: defaultdict[tuple[str, str], list[Market]] = defaultdict(list)
        for market in sorted(markets, key=lambda market: market.market_id):
            for base in {market.base, market.base_code}:
                for quote in {market.quote, market.quote_code}:
                    self._by_codes[base, quote].append(market)

    def find(self, base: ItemName, quote: ItemName) -> list[Market]:
        """Return the markets of exactly this base and quote, by id.

        A mapping symbol is a unified or an own code; a symbol without mapping is a unified code alone.
        """
        return [
            market
            for market in self._by_codes.get((base.text, quote.text), ())
            if (base.mapped is not None or market.base == base.symbol)
            and (quote.mapped is not None or market.quote == quote.symbol)
        ]


@dataclass(frozen=True, slots=True)
class Offer:
    """The markets or supported pairs of one source.

    Args:
        name: for people.
        is_manual: whether it has supported pairs instead of markets.
        price_types: types that a preconfigured source supplies; empty when it is no longer defined.
        markets: its market list; None while it is not collected.
        supported_pairs: keys of a manual source's supported pairs by symbol, symbol and price type.
    """

    name: str
    is_manual: bool
    price_types: frozenset[str] = frozenset()
    markets: MarketIndex | None = None
    supported_pairs: Mapping[tuple[str, str, str], int] = field(default_factory=dict)


def resolve(wanted: Wanted, offer: Offer) -> Route | Unresolved:
    """Return the route of a pair at one source, or why there is none.

    A market in the pair's own direction wins over an inverted one, and that over a bridge; the latter two count only
    when the pair allows them, and so does an inverted leg of a bridge. Only active markets give a route.
    """
    names = f"{wanted.priced_as.text}/{wanted.priced_in.text}"
    if offer.is_manual:
        key = offer.supported_pairs.get((wanted.priced_as.symbol, wanted.priced_in.symbol, wanted.price_type))
        if key is not None:
            return Route(Derivation.MANUAL, supported_pair_key=key)
        pair = f"{wanted.priced_as.symbol}/{wanted.priced_in.symbol}"
        return Unresolved(
            MappingStatus.NO_MARKET, f"{offer.name} has no supported pair {pair} of price type {wanted.price_type}"
        )
    if wanted.price_type not in offer.price_types:
        has = f"it has {', '.join(sorted(offer.price_types))}" if offer.price_types else "it is no longer defined"
        return Unresolved(
            MappingStatus.UNSUPPORTED, f"{offer.name} does not supply the price type {wanted.price_type}; {has}"
        )
    if offer.markets is None:
        return Unresolved(MappingStatus.PENDING, f"the market list of {offer.name} is not collected yet")
    found = _search(wanted, offer.markets)
    if isinstance(found, Route):
        lacking = sorted({leg.price_type for leg in found.legs} - offer.price_types)
        if lacking:
            return Unresolved(
                MappingStatus.UNSUPPORTED,
                f"{offer.name} has {names} only by inverting a market, and does not supply the price type "
                f"{lacking[0]} that this needs",
            )
        return found
    if isinstance(found, _Several):
        listed = ", ".join(_describe(market) for market in found.markets[:_MOST_CANDIDATES])
        return Unresolved(
            MappingStatus.AMBIGUOUS,
            f"{offer.name} has several assets under these codes: {listed}; "
            "map the symbol to the own code of one of them",
            tuple(found.markets[:_MOST_CANDIDATES]),
        )
    if found:
        listed = ", ".join(_describe(market) for market in found)
        return Unresolved(
            MappingStatus.MARKET_GONE,
            f"{offer.name} no longer trades these markets for {names}: {listed}",
            tuple(found),
        )
    return Unresolved(MappingStatus.NO_MARKET, _describe_search(wanted, offer))


@dataclass(frozen=True, slots=True)
class _Several:
    markets: list[Market]


_Step = tuple[ItemName, ItemName]


def _ways(wanted: Wanted) -> list[tuple[Derivation, list[list[tuple[_Step, bool]]]]]:
    """Return the ways to a price in order: for each leg its choices, each a base, a quote and whether to invert."""

    def choices(base: ItemName, quote: ItemName) -> list[tuple[_Step, bool]]:
        inverted = [((quote, base), True)] if wanted.allow_inverse else []
        return [((base, quote), False), *inverted]

    direct, *inverse = choices(wanted.priced_as, wanted.priced_in)
    ways = [(Derivation.DIRECT, [[direct]])]
    if inverse:
        ways.append((Derivation.INVERSE, [inverse]))
    if wanted.bridge is not None:
        legs = [choices(wanted.priced_as, wanted.bridge), choices(wanted.bridge, wanted.priced_in)]
        ways.append((Derivation.BRIDGE, legs))
    return ways


def _search(wanted: Wanted, markets: MarketIndex) -> Route | _Several | list[Market]:
    """Return the first way with active markets, or what is ambiguous on it, or the inactive markets of the ways."""
    gone: list[Market] = []
    for derivation, legs in _ways(wanted):
        chosen: list[Leg] = []
        inactive: list[Market] = []
        for choices in legs:
            found = _choose(choices, wanted.price_type, markets)
            if isinstance(found, _Several):
                return found
            if isinstance(found, Leg):
                chosen.append(found)
            elif found:
                inactive += found
            else:
                break
        else:
            if not inactive:
                return Route(derivation, tuple(chosen))
            gone += [market for market in inactive if market not in gone]
    return gone


def _choose(choices: list[tuple[_Step, bool]], price_type: str, markets: MarketIndex) -> Leg | _Several | list[Market]:
    """Return the leg of the first choice with an active market, or what is ambiguous, or the inactive markets."""
    gone: list[Market] = []
    for (base, quote), is_inverted in choices:
        found = markets.find(base, quote)
        active = _narrow([market for market in found if market.is_active], base, quote)
        if len({(market.base_code, market.quote_code) for market in active}) > 1:
            return _Several(active)
        if active:
            leg_type = _INVERTED_TYPES.get(price_type, price_type) if is_inverted else price_type
            return Leg(active[0].market_id, leg_type, is_inverted)
        gone += found
    return gone


def _narrow(markets: list[Market], base: ItemName, quote: ItemName) -> list[Market]:
    """Prefer markets whose own code is the mapping symbol: own codes are unique, so any asset can be named."""
    if base.mapped is not None:
        markets = [market for market in markets if market.base_code == base.mapped] or markets
    if quote.mapped is not None:
        markets = [market for market in markets if market.quote_code == quote.mapped] or markets
    return markets


def _describe(market: Market) -> str:
    return f"{market.market_id} ({market.base_code}/{market.quote_code})"


def _describe_search(wanted: Wanted, offer: Offer) -> str:
    """Say what was searched for, and whether inverting would find it."""
    ways = _ways(wanted)
    searched = [
        f"{base.text}/{quote.text}{' inverted' if is_inverted else ''}"
        for _, legs in ways
        for choices in legs
        for (base, quote), is_inverted in choices
    ]
    detail = f"{offer.name} has no such spot market; searched {', '.join(searched)}"
    inverting = Wanted(wanted.priced_as, wanted.priced_in, wanted.price_type, True, wanted.bridge)
    if not wanted.allow_inverse and offer.markets is not None and isinstance(_search(inverting, offer.markets), Route):
        return f"{detail}; it has an inverse market that allowInverse would use"
    return detail
