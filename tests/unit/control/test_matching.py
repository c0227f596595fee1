"""Markets of a source for a pair: directions, own codes, ambiguity, delisted markets."""

import pytest

from control.pricing.matching import (
    Derivation,
    ItemName,
    Leg,
    MappingStatus,
    MarketIndex,
    Offer,
    Route,
    Unresolved,
    Wanted,
    resolve,
)
from tests.unit.control.pricing import Listed


def market(market_id: str, *, own: str | None = None, active: bool = True) -> Listed:
    """Return a market 'BASE/QUOTE...', its own codes 'BASE/QUOTE' where they differ."""
    base, quote = market_id.split("#")[0].split("/")
    base_code, quote_code = (own or f"{base}/{quote}").split("/")
    return Listed(market_id, base, quote, base_code, quote_code, active)


def item(text: str) -> ItemName:
    """Return an item 'SYMBOL' or 'SYMBOL>MAPPED'."""
    symbol, _, mapped = text.partition(">")
    return ItemName(symbol, mapped or None)


def find(
    pair: str, *markets: Listed, inverse: bool = False, bridge: str | None = None, price_type: str = "Trade"
) -> Route | Unresolved:
    """Resolve 'AS/IN' at a source with these markets, also listed in reverse order."""
    priced_as, priced_in = (item(text) for text in pair.split("/"))
    wanted = Wanted(priced_as, priced_in, price_type, inverse, None if bridge is None else item(bridge))
    found = [
        resolve(wanted, Offer("Kraken", False, frozenset({"Trade", "Bid"}), MarketIndex(ordered)))
        for ordered in (markets, markets[::-1])
    ]
    assert found[0] == found[1]
    return found[0]


def status(found: Route | Unresolved) -> str:
    return found.status.value


def test_a_market_of_exactly_these_codes_is_found() -> None:
    found = find("BTC/USD", market("BTC/USDT"), market("BTC/USD", own="XXBT/ZUSD"), market("WBTC/USD"))
    assert found == Route(Derivation.DIRECT, (Leg("BTC/USD", "Trade", False),))
    assert found.status is MappingStatus.RESOLVED


@pytest.mark.parametrize("pair", ["btc/USD", "XXBT/USD", "BT/USD", "USD/BTC"])
def test_other_markets_are_not_found(pair: str) -> None:
    found = find(pair, market("BTC/USD", own="XXBT/ZUSD"))
    assert status(found) == "NoMarket"


@pytest.mark.parametrize("pair", ["MYBTC>XXBT/USD", "MYBTC>BTC/USD", "MYBTC>BTC/D>ZUSD", "BTC/D>USD"])
def test_a_mapping_symbol_is_either_code(pair: str) -> None:
    found = find(pair, market("BTC/USD", own="XXBT/ZUSD"))
    assert found == Route(Derivation.DIRECT, (Leg("BTC/USD", "Trade", False),))


def test_a_mapping_replaces_the_symbol() -> None:
    assert status(find("BTC>XBT/USD", market("BTC/USD", own="BTC/USD"))) == "NoMarket"


def test_inverse_only_when_allowed_and_after_direct() -> None:
    inverted, direct = market("USD/EUR"), market("EUR/USD")
    refused = find("EUR/USD", inverted)
    assert isinstance(refused, Unresolved)
    assert refused.status is MappingStatus.NO_MARKET
    assert "searched EUR/USD;" in refused.detail
    assert "allowInverse" in refused.detail
    assert find("EUR/USD", inverted, inverse=True) == Route(Derivation.INVERSE, (Leg("USD/EUR", "Trade", True),))
    assert find("EUR/USD", inverted, direct, inverse=True) == Route(
        Derivation.DIRECT, (Leg("EUR/USD", "Trade", False),)
    )


def test_a_bridge_only_when_named_and_last() -> None:
    first, second = market("SOL/USD"), market("USD/EUR")
    assert status(find("SOL/EUR", first, second)) == "NoMarket"
    crossed = Route(Derivation.BRIDGE, (Leg("SOL/USD", "Trade", False), Leg("USD/EUR", "Trade", False)))
    assert find("SOL/EUR", first, second, bridge="USD") == crossed
    assert status(find("SOL/EUR", first, bridge="USD")) == "NoMarket"
    inverted = find("SOL/EUR", first, second, market("EUR/SOL"), bridge="USD", inverse=True)
    assert inverted == Route(Derivation.INVERSE, (Leg("EUR/SOL", "Trade", True),))


def test_a_bridges_leg_is_inverted_only_when_allowed() -> None:
    first, second = market("SOL/USD"), market("EUR/USD")
    refused = find("SOL/EUR", first, second, bridge="USD")
    assert isinstance(refused, Unresolved)
    assert "searched SOL/EUR, SOL/USD, USD/EUR;" in refused.detail
    found = find("SOL/EUR", first, second, bridge="USD", inverse=True)
    assert found == Route(Derivation.BRIDGE, (Leg("SOL/USD", "Trade", False), Leg("EUR/USD", "Trade", True)))


def test_different_assets_under_one_code_are_ambiguous() -> None:
    old, new = market("LUNA/USD#1", own="LUNA/ZUSD"), market("LUNA/USD#2", own="LUNA2/ZUSD")
    found = find("LUNA/USD", old, new)
    assert isinstance(found, Unresolved)
    assert found.status is MappingStatus.AMBIGUOUS
    assert found.candidates == (old, new)
    assert "LUNA/USD#1 (LUNA/ZUSD), LUNA/USD#2 (LUNA2/ZUSD)" in found.detail
    assert "map the symbol" in found.detail


def test_mapping_to_an_own_code_resolves_the_ambiguity() -> None:
    old, new = market("LUNA/USD#1", own="LUNA/ZUSD"), market("LUNA/USD#2", own="LUNA2/ZUSD")
    assert find("LUNA>LUNA2/USD", old, new) == Route(Derivation.DIRECT, (Leg("LUNA/USD#2", "Trade", False),))
    assert find("LUNA>LUNA/USD", old, new) == Route(Derivation.DIRECT, (Leg("LUNA/USD#1", "Trade", False),))


def test_the_quote_may_be_ambiguous_too() -> None:
    first, second = market("BTC/USD#1", own="BTC/ZUSD"), market("BTC/USD#2", own="BTC/USDX")
    assert status(find("BTC/USD", first, second)) == "Ambiguous"
    assert find("BTC/USD>USDX", first, second) == Route(Derivation.DIRECT, (Leg("BTC/USD#2", "Trade", False),))


def test_several_markets_of_the_same_asset_are_one_price() -> None:
    found = find("BTC/USD", market("BTC/USD#b", own="XXBT/ZUSD"), market("BTC/USD#a", own="XXBT/ZUSD"))
    assert found == Route(Derivation.DIRECT, (Leg("BTC/USD#a", "Trade", False),))


def test_an_ambiguous_direct_market_is_not_passed_over() -> None:
    markets = market("A/B#1", own="A/B"), market("A/B#2", own="A2/B"), market("B/A")
    assert status(find("A/B", *markets, inverse=True)) == "Ambiguous"


def test_an_inactive_market_gives_no_price() -> None:
    gone = market("BTC/USD", active=False)
    found = find("BTC/USD", gone)
    assert isinstance(found, Unresolved)
    assert (found.status, found.candidates) == (MappingStatus.MARKET_GONE, (gone,))
    assert "BTC/USD" in found.detail


def test_active_market_elsewhere_gives_a_price() -> None:
    gone = market("BTC/USD#old", own="OLD/USD", active=False)
    assert find("BTC/USD", gone, market("BTC/USD")) == Route(Derivation.DIRECT, (Leg("BTC/USD", "Trade", False),))
    assert find("BTC/USD", gone, market("USD/BTC"), inverse=True) == Route(
        Derivation.INVERSE, (Leg("USD/BTC", "Trade", True),)
    )
    bridged = find("BTC/USD", gone, market("BTC/EUR"), market("EUR/USD"), bridge="EUR")
    assert status(bridged) == "Resolved"


def test_bridge_with_a_delisted_leg_is_gone() -> None:
    found = find("BTC/USD", market("BTC/EUR"), market("EUR/USD", active=False), bridge="EUR")
    assert isinstance(found, Unresolved)
    assert found.status is MappingStatus.MARKET_GONE
    assert [gone.market_id for gone in found.candidates] == ["EUR/USD"]


def test_price_type_missing_at_the_source() -> None:
    found = find("BTC/USD", market("BTC/USD"), price_type="NAV")
    assert isinstance(found, Unresolved)
    assert found.status is MappingStatus.UNSUPPORTED
    assert "it has Bid, Trade" in found.detail


@pytest.mark.parametrize(("price_type", "leg_type"), [("Bid", "Ask"), ("Ask", "Bid"), ("Market", "Market")])
def test_an_inverted_market_gives_the_other_sides_price(price_type: str, leg_type: str) -> None:
    wanted = Wanted(ItemName("USD"), ItemName("BTC"), price_type, allow_inverse=True)
    index = MarketIndex([market("BTC/USD")])
    found = resolve(wanted, Offer("Kraken", False, frozenset({"Bid", "Ask", "Market"}), index))
    assert found == Route(Derivation.INVERSE, (Leg("BTC/USD", leg_type, True),))
    if leg_type != price_type:
        one_sided = resolve(wanted, Offer("Kraken", False, frozenset({price_type}), index))
        assert isinstance(one_sided, Unresolved)
        assert one_sided.status is MappingStatus.UNSUPPORTED
        assert f"does not supply the price type {leg_type}" in one_sided.detail


def test_uncollected_list_is_pending_and_empty_list_is_not() -> None:
    wanted = Wanted(ItemName("BTC"), ItemName("USD"), "Trade")
    types = frozenset({"Trade"})
    assert status(resolve(wanted, Offer("Kraken", False, types, None))) == "Pending"
    assert status(resolve(wanted, Offer("Kraken", False, types, MarketIndex([])))) == "NoMarket"


def test_a_manual_source_has_exactly_its_supported_pairs() -> None:
    offer = Offer("Ours", True, supported_pairs={("FUND", "USD", "NAV"): 7})
    wanted = Wanted(ItemName("FUND", "X"), ItemName("USD"), "NAV", allow_inverse=True)
    assert resolve(wanted, offer) == Route(Derivation.MANUAL, supported_pair_key=7)
    for other in (
        Wanted(ItemName("USD"), ItemName("FUND"), "NAV", allow_inverse=True),
        Wanted(ItemName("FUND"), ItemName("USD"), "Trade"),
    ):
        assert status(resolve(other, offer)) == "NoMarket"
