"""Scripted markets of exchanges and a central bank, with prices as a function of time.

The model only uses `decimal`, so that tests compute expected prices without the service's code.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

PriceAt = Callable[[datetime], Decimal]

STEPS = {
    "1m": timedelta(minutes=1),
    "5m": timedelta(minutes=5),
    "15m": timedelta(minutes=15),
    "30m": timedelta(minutes=30),
    "1h": timedelta(hours=1),
    "1d": timedelta(days=1),
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True)
class ScriptedMarket:
    """One market, by unified codes.

    Attributes:
        last: the last trade's price at a time.
        spread: distance of the best offers to the last price.
        listed_from: time before which there are no candles.
        traded_at: time of the last trade before a moment; None: the exchange has no such trade.
        quiet: True if there was no trade between two times; exchanges then repeat the last price or skip the candle.
    """

    base: str
    quote: str
    last: PriceAt
    spread: Decimal = Decimal("0.01")
    is_active: bool = True
    listed_from: datetime = _EPOCH
    traded_at: Callable[[datetime], datetime | None] = field(default=lambda now: now - timedelta(milliseconds=2345))
    quiet: Callable[[datetime, datetime], bool] = field(default=lambda start, end: False)

    @property
    def name(self) -> str:
        """Base and quote, such as `BTC/USD`."""
        return f"{self.base}/{self.quote}"


@dataclass(frozen=True)
class Candle:
    """Open, high, low and close of the trades from `start` to before the end; `volume` is zero without trades."""

    start: datetime
    open: Decimal
    high: Decimal
    low: Decimal
    close: Decimal
    volume: Decimal


def candle(market: ScriptedMarket, start: datetime, step: timedelta, now: datetime) -> Candle:
    """Return the candle that begins at `start`; an unfinished one has its values so far."""
    last = min(start + step - _MOMENT, now)
    first_price, last_price = market.last(start), market.last(last)
    volume = Decimal(0) if market.quiet(start, start + step) else Decimal("1.5")
    return Candle(start, first_price, max(first_price, last_price), min(first_price, last_price), last_price, volume)


def candles(market: ScriptedMarket, step: timedelta, first: datetime, last: datetime, now: datetime) -> list[Candle]:
    """Return the candles that begin from `first` to `last`, both included, oldest first, and not in the future."""
    start = _EPOCH + -((_EPOCH - max(first, market.listed_from)) // step) * step
    found = []
    while start <= min(last, now):
        found.append(candle(market, start, step, now))
        start += step
    return found


def steady(price: str) -> PriceAt:
    """A price that never changes."""
    return lambda _: Decimal(price)


def wandering(start: str, seed: int, step: timedelta = timedelta(minutes=1), decimals: int = 2) -> PriceAt:
    """Return a deterministic price function: a new value in each step of time, within 5% of `start`."""
    base, unit = Decimal(start), Decimal(1).scaleb(-decimals)

    def at(instant: datetime) -> Decimal:
        position = (instant - _EPOCH) // step
        thousandths = random.Random(f"{seed} {position}").randrange(950, 1051)
        return (base * thousandths / 1000).quantize(unit)

    return at


def path(points: Mapping[datetime, str]) -> PriceAt:
    """A price that jumps: each from its time on, the first one also before."""
    ordered = sorted(points.items())

    def at(instant: datetime) -> Decimal:
        reached = [price for begins, price in ordered if begins <= instant]
        return Decimal(reached[-1] if reached else ordered[0][1])

    return at


def rates_on(day: date) -> dict[str, Decimal] | None:
    """Return the default euro reference rates of a day; None on Saturdays and Sundays."""
    if day.weekday() >= 5:
        return None
    ordinal = day.toordinal()
    return {
        "USD": Decimal(10_000 + ordinal % 997) / 10_000,
        "GBP": Decimal(80_000 + ordinal % 4_999) / 100_000,
        "JPY": Decimal(15_000 + ordinal % 1_009) / 100,
    }
