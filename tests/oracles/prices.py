"""The system price by its definition: per moment a search through the sources, in exact fractions. No SQL, no steps."""

import hashlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal, localcontext
from fractions import Fraction
from statistics import median
from typing import NamedTuple

from tests.worlds.prices import LARGEST, Pair, PriceWorld, Route

MICROSECOND = timedelta(microseconds=1)


class LegPrice(NamedTuple):
    """A leg's price for one instant."""

    effective_from: datetime
    window_start: datetime | None
    price: Decimal
    is_partial: bool

    def fresh_until(self, pair: Pair) -> datetime | None:
        """The first instant at which it is too old."""
        if pair.max_age is None:
            return None
        window = self.effective_from - self.window_start if self.window_start else timedelta()
        return self.effective_from + max(timedelta(seconds=pair.max_age), window) + MICROSECOND


class SourcePrice(NamedTuple):
    """A row of source_prices; `price` None where it has no room."""

    source: str
    position: int
    effective_from: datetime
    window_start: datetime | None
    price: Decimal | None
    price_text: str
    is_partial: bool
    derivation: str
    fresh_until: datetime | None
    state: str
    reason: str | None
    price_id: str

    def is_fresh(self, moment: datetime) -> bool:
        """Return whether the price is not too old."""
        return self.fresh_until is None or moment < self.fresh_until


class Step(NamedTuple):
    """The status in force at a moment, and the price behind it."""

    status: str
    price: SourcePrice | None = None


def rounded_text(value: Fraction) -> str:
    """Canonical text of a rate, half to even at 18 decimals."""
    units = round(value * 10**18)
    whole, rest = divmod(units, 10**18)
    fraction = str(rest).rjust(18, "0").rstrip("0")
    return f"{whole}.{fraction}" if fraction else str(whole)


def leg_prices(world: PriceWorld, pair: Pair, route: Route, leg_number: int) -> list[LegPrice]:
    """Return the prices of a leg that the pair's tenant may see, one per instant, in time order."""
    found: dict[datetime, tuple[tuple[float, float], LegPrice]] = {}

    def offer(price: LegPrice, precedence: float) -> None:
        length = (price.effective_from - price.window_start).total_seconds() if price.window_start else 0.0
        rank = (length, -precedence)
        if price.effective_from not in found or rank < found[price.effective_from][0]:
            found[price.effective_from] = (rank, price)

    if route.supported_pair is not None:
        for row in world.manual:
            if row.supported_pair == route.supported_pair:
                offer(LegPrice(row.effective_from, None, row.price, False), row.revision)
    else:
        leg = route.legs[leg_number]
        for identity, said in world.prices.items():
            source, market, price_type, start, end = identity
            if (source, market, price_type) != (route.source, leg.market, leg.price_type):
                continue
            is_polled = said.origin == "Poll" and said.last_collected_at >= pair.created_at
            if is_polled or (pair.key, identity) in world.windows:
                offer(LegPrice(end, start, said.price, said.is_partial), said.last_collected_at.timestamp())
    return [found[moment][1] for moment in sorted(found)]


def newest(prices: Iterable[LegPrice], moment: datetime) -> LegPrice | None:
    """The last one at or before a moment."""
    return max((price for price in prices if price.effective_from <= moment), default=None, key=lambda price: price[0])


def composed(world: PriceWorld, pair: Pair, position: int) -> list[SourcePrice]:
    """Return one source's prices of the pair, before guards."""
    route = pair.routes[position]
    legs = [leg_prices(world, pair, route, number) for number in range(max(1, len(route.legs)))]
    inverted = [leg.is_inverted for leg in route.legs] or [False]
    answers = []
    for moment in sorted({price.effective_from for prices in legs for price in prices}):
        parts = [newest(prices, moment) for prices in legs]
        if any(part is None for part in parts):
            continue
        known = [part for part in parts if part is not None]
        ends = [part.fresh_until(pair) for part in known]
        fresh_until = None if pair.max_age is None else min(end for end in ends if end is not None)
        if fresh_until is not None and moment >= fresh_until:
            continue
        rate = Fraction(1)
        for part, is_inverted in zip(known, inverted, strict=True):
            rate = rate / Fraction(part.price) if is_inverted else rate * Fraction(part.price)
        text = rounded_text(rate)
        with localcontext() as context:
            context.prec = 80
            price = Decimal(text)
        same = all((part.effective_from, part.window_start) == known[0][:2] for part in known)
        start = known[0].window_start if same else None
        digest = hashlib.md5(
            "|".join([pair.id, route.source, str(moment), str(start or ""), text]).encode(), usedforsecurity=False
        )
        answers.append(
            SourcePrice(
                source=route.source,
                position=position,
                effective_from=moment,
                window_start=start,
                price=price if 0 < price <= LARGEST else None,
                price_text=text,
                is_partial=any(part.is_partial for part in known),
                derivation=route.derivation,
                fresh_until=fresh_until,
                state="",
                reason=None,
                price_id="price_" + digest.hexdigest(),
            )
        )
    return answers


def differs(price: Decimal, reference: Fraction, percent: Decimal) -> bool:
    """Return whether a price deviates from a reference by more than a percentage."""
    return abs(Fraction(price) - reference) / reference * 100 > Fraction(percent)


def source_prices(world: PriceWorld, pair: Pair) -> list[SourcePrice]:
    """Return the sources' prices of the pair, with guards applied one after the other."""
    said = [price for position in range(len(pair.routes)) for price in composed(world, pair, position)]
    heard = [price for price in said if world.reviews.get((pair.key, price.price_id)) != "Rejected"]
    used: dict[str, Decimal] = {}
    answers = []
    for price in sorted(said, key=lambda price: (price.effective_from, price.position)):
        decision = world.reviews.get((pair.key, price.price_id))
        if price.price is None:
            state = "Rejected" if decision == "Rejected" else "Quarantined"
            answers.append(price._replace(state=state, reason="OutOfRange"))
            continue
        failed = []
        last_used = used.get(price.source)
        if None not in (pair.max_jump, last_used) and differs(price.price, Fraction(last_used), pair.max_jump):
            failed.append("Jump")
        if pair.max_deviation is not None:
            others = []
            for route in pair.routes:
                mine = [
                    other
                    for other in heard
                    if other.source == route.source != price.source and other.effective_from <= price.effective_from
                ]
                last = max(mine, key=lambda other: other.effective_from, default=None)
                if last is not None and last.price is not None and last.is_fresh(price.effective_from):
                    others.append(Fraction(last.price))
            if others and differs(price.price, median(others), pair.max_deviation):
                failed.append("Deviation")
        state = decision or ("Quarantined" if failed else "Used")
        if state in ("Used", "Accepted"):
            used[price.source] = price.price
        answers.append(price._replace(state=state, reason=", ".join(failed) or None))
    return answers


def step_at(pair: Pair, prices: Iterable[SourcePrice], moment: datetime) -> Step | None:
    """Return the system price at a moment; None before the first price."""
    until_now = [price for price in prices if price.effective_from <= moment and price.state != "Rejected"]
    if not until_now:
        return None
    is_stopped = False
    for route in pair.routes:
        mine = [price for price in until_now if price.source == route.source]
        newest_one = max(mine, key=lambda price: price.effective_from, default=None)
        if newest_one is None or not newest_one.is_fresh(moment):
            continue
        if newest_one.state != "Quarantined":
            return Step("Priced", newest_one)
        is_stopped = True
    return Step("Quarantined" if is_stopped else "StalePrice")


def steps(pair: Pair, prices: list[SourcePrice]) -> list[tuple[datetime, Step]]:
    """The system price wherever it changes, from the first one on."""
    moments = {price.effective_from for price in prices}
    moments |= {price.fresh_until for price in prices if price.fresh_until is not None}
    answers: list[tuple[datetime, Step]] = []
    for moment in sorted(moments):
        step = step_at(pair, prices, moment)
        if step is not None and (not answers or answers[-1][1] != step):
            answers.append((moment, step))
    return answers
