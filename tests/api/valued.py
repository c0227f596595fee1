"""Example data with prices: a token that is linked to a pair of two sources, and a wallet with valued positions.

The data are prices as published by sources. `price_at` resolves them for any moment in plain Python. From it come the
rows of the marts: steps of the system price, and values of activities.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from api.examples import EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from control.models import Subject
from tests.api.marts import publish
from tests.api.pricing import add_item, add_pair, step_row
from tests.api.world import STRANGE, World, marts_rows, time_of

SMALL_PAIR_KEY, SMALL_PAIR_ID = 10, "pair_01k9zr3m5e8v2c7q4w6t1x0z10"
ETHER_PAIR_KEY, ETHER_PAIR_ID = 11, "pair_01k9zr3m5e8v2c7q4w6t1x0z11"
SOURCES = ("src_kraken", "src_coinbase")
MAX_AGE = timedelta(minutes=7)
AS_OF = time_of(400)
INSTANT = timedelta(microseconds=1)
START = time_of(100)

_SMALL = "0x" + "a" * 40  # address of the first token
_EXACT = Context(prec=400, rounding=ROUND_HALF_EVEN)


@dataclass(frozen=True)
class Said:
    """One price from one source."""

    source: str
    at: datetime
    price: str
    state: str = "Used"

    @property
    def fresh_until(self) -> datetime:
        """The first moment at which the price is stale."""
        return self.at + MAX_AGE + INSTANT


@dataclass(frozen=True)
class Resolved:
    """The system price at a moment."""

    status: str
    said: Said | None = None

    @property
    def price(self) -> str | None:
        """The price as text."""
        return self.said.price if self.said else None


def minute(minutes: float) -> datetime:
    """Return a moment of the first hour."""
    return START + timedelta(minutes=minutes)


SMALL_PRICES = (
    Said("src_kraken", minute(2), "2.5"),
    Said("src_kraken", minute(5), "3.000000000000000001"),
    Said("src_coinbase", minute(9), "7.1"),
    Said("src_kraken", minute(40), "4"),
    Said("src_kraken", minute(44), "400", "Quarantined"),
    Said("src_kraken", minute(50), "5.5"),
    Said("src_kraken", minute(59.5), "6.25"),
)
ETHER_PRICES = (Said("src_kraken", minute(-2), "3000"), Said("src_kraken", minute(56), "3141.592653589793238462"))


def price_at(prices: Iterable[Said], moment: datetime) -> Resolved:
    """Return the system price at a moment: the fresh, not quarantined newest price of the first source with one."""
    known = [said for said in prices if said.at <= moment]
    newest = [
        max(own, key=lambda said: said.at)
        for source in SOURCES
        if (own := [said for said in known if said.source == source])
    ]
    fresh = [said for said in newest if moment < said.fresh_until]
    used = next((said for said in fresh if said.state == "Used"), None)
    if used is not None:
        return Resolved("Priced", used)
    if fresh:
        return Resolved("Quarantined")
    return Resolved("StalePrice" if known else "NoPrice")


def value_of(quantity: str | None, price: str | None) -> str | None:
    """Return a value as canonical text: the exact product, rounded half to even to 18 decimals."""
    if quantity is None or price is None:
        return None
    product = _EXACT.multiply(Decimal(quantity), Decimal(price))
    text = format(product.quantize(Decimal(1).scaleb(-18), context=_EXACT), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def sum_of(values: Iterable[str]) -> str:
    """Return a sum as canonical text."""
    total = Decimal(0)
    for value in values:
        total = _EXACT.add(total, Decimal(value))
    text = format(total, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def naive(moment: datetime) -> datetime:
    """Return a moment as the marts store it."""
    return moment.astimezone(UTC).replace(tzinfo=None)


def link_small(world: World) -> None:
    """Create the pairs and link the first token to one of them."""
    with world.store.write() as session:
        for key, pair_id, symbol in ((SMALL_PAIR_KEY, SMALL_PAIR_ID, "SMALL"), (ETHER_PAIR_KEY, ETHER_PAIR_ID, "ETH")):
            item = add_item(session, world.tenant_id, symbol, symbol, "Cryptocurrency", suffix=f"z{key}", made_at=START)
            add_pair(
                session,
                world.tenant_id,
                key,
                pair_id,
                item,
                SOURCES,
                max_age="PT7M",
                max_age_seconds=420,
                made_at=START,
            )
        session.get_one(Subject, world.subject_keys[EXAMPLE_TOKEN_ID]).pair_key = SMALL_PAIR_KEY


def publish_valued(world: World, version: int = 1) -> dict[str, list[dict[str, Any]]]:
    """Link the token and publish a version with its values; return the rows."""
    link_small(world)
    rows = valued_rows(world)
    publish(world.settings.serving_dir, version, rows)
    return rows


def valued_rows(world: World) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the example marts with the two pairs, their prices and the resulting values."""
    rows = marts_rows(world)
    for key, pair_id, symbol, prices in (
        (SMALL_PAIR_KEY, SMALL_PAIR_ID, "SMALL", SMALL_PRICES),
        (ETHER_PAIR_KEY, ETHER_PAIR_ID, "ETH", ETHER_PRICES),
    ):
        _add_pair(rows, world, key, pair_id, symbol, prices)
    small, wallet = world.subject_keys[EXAMPLE_TOKEN_ID], world.subject_keys[EXAMPLE_WALLET_ID]
    now = price_at(SMALL_PRICES, AS_OF).price
    for row in rows["token_prices"]:
        if row["subject_key"] == small:
            row.update(
                pair_key=SMALL_PAIR_KEY,
                pair_id=SMALL_PAIR_ID,
                price_text=now,
                price_status="Priced",
                market_capitalization=value_of("155", now),
                market_capitalization_status="Priced",
                change24h_status="NoPrice",
            )
    held = value_of("5.999999999999979", price_at(ETHER_PRICES, AS_OF).price)
    for row in rows["wallet_totals"]:
        if row["subject_key"] == wallet:
            row.update(total_value=held, total_value_status="Priced", unpriced=[STRANGE])
    rows["token_pairs"] += [
        {
            "tenant_id": world.tenant_id,
            "subject_key": subject,
            "network": "ethereum",
            "token_address": address,
            "pair_key": key,
        }
        for subject, address, key in (
            (wallet, "native", ETHER_PAIR_KEY),
            (wallet, _SMALL, SMALL_PAIR_KEY),
            (small, _SMALL, SMALL_PAIR_KEY),
        )
    ]
    rows["token_activity_values"] += [
        _activity_value(row, SMALL_PAIR_KEY, SMALL_PRICES)
        for row in rows["token_activities"]
        if row["subject_key"] == small
    ]
    linked = {"native": (ETHER_PAIR_KEY, ETHER_PRICES), _SMALL: (SMALL_PAIR_KEY, SMALL_PRICES)}
    rows["wallet_activity_values"] = [
        _activity_value(row, *linked[row["token_address"]])
        for row in rows["wallet_activities"]
        if row["token_address"] in linked
    ]
    return rows


def _activity_value(row: dict[str, Any], pair_key: int, prices: Iterable[Said]) -> dict[str, Any]:
    resolved = price_at(prices, row["block_time"].replace(tzinfo=UTC))
    value = value_of(row["amount"], resolved.price)
    kept = ("tenant_id", "subject_key", "activity_id", "block_number", "block_time", "transaction_index")
    return {name: row[name] for name in kept} | {
        "pair_key": pair_key,
        "price_text": resolved.price,
        "value": value,
        "value_status": resolved.status,
    }


def _add_pair(
    rows: dict[str, list[dict[str, Any]]], world: World, key: int, pair_id: str, symbol: str, prices: tuple[Said, ...]
) -> None:
    keys = {"tenant_id": world.tenant_id, "pair_key": key}
    rows["price_pairs"].append(
        keys
        | {
            "pair_id": pair_id,
            "priced_as": symbol,
            "priced_in": "USD",
            "price_type": "Trade",
            "max_age_seconds": 420,
        }
    )
    rows["price_routes"] += [
        keys | {"source_id": source, "position": position, "status": "Resolved", "derivation": "Direct"}
        for position, source in enumerate(SOURCES)
    ]
    rows["source_prices"] += [
        keys
        | {
            "source_id": said.source,
            "position": SOURCES.index(said.source),
            "effective_from": naive(said.at),
            "price": said.price,
            "price_text": said.price,
            "is_partial": False,
            "derivation": "Direct",
            "fresh_until": naive(said.fresh_until),
            "state": said.state,
            "reason": None if said.state == "Used" else "Jump",
            "price_id": f"price_{symbol}_{number}",
        }
        for number, said in enumerate(prices)
    ]
    bounds = sorted({moment for said in prices for moment in (said.at, said.fresh_until)})
    steps: list[dict[str, Any]] = []
    for moment in bounds:
        resolved = price_at(prices, moment)
        said = resolved.said
        step: dict[str, Any] = keys | {"price_status": resolved.status}
        if said is not None:
            step |= step_row(said.price, naive(said.at), said.source, SOURCES.index(said.source))
        if steps and {**steps[-1], "valid_from": None} == {**step, "valid_from": None}:
            continue
        steps.append(step | {"valid_from": naive(moment)})
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        rows["system_prices"].append(step | {"valid_until": following["valid_from"] if following else None})
