"""The protocol of all price sources: exchanges, feeds and reference rates implement it.

Other modules decide when to poll a source, and store its answers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Market:
    """One spot market that a source lists: the price of base in quote.

    Attributes:
        market_id: the source's own name of it; of a feed, the lower-case address.
        base, quote: codes as unified across sources (`BTC`).
        base_code, quote_code: the source's own codes (`XXBT`).
        is_active: whether it trades now.
    """

    market_id: str
    base: str
    quote: str
    base_code: str
    quote_code: str
    is_active: bool


@dataclass(frozen=True, slots=True)
class MarketPrice:
    """One price of a market, exact: positive, at most 18 decimals and 20 digits before them.

    Attributes:
        effective_from: aware UTC; never later than the moment of the answer. For each kind: the end of a
            candle, a feed's `updatedAt`, the receipt of a best offer, the exchange's time of a trade, the hour of
            publication of a reference rate.
        window_start: aware UTC; the start of a candle; None for a price of a moment.
    """

    market_id: str
    price_type: str
    effective_from: datetime
    window_start: datetime | None
    price: Decimal


@dataclass(frozen=True, slots=True)
class Problem:
    """Reason why one market has no price of a type in an otherwise good answer; `detail` is a text for people."""

    market_id: str
    price_type: str
    detail: str


@dataclass(frozen=True, slots=True)
class PollResult:
    """The newest prices; each wanted price is in exactly one of the two lists, in the order of the request."""

    prices: list[MarketPrice]
    problems: list[Problem]


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """A piece of history.

    Attributes:
        prices: by effective_from, no two of the same.
        up_to: aware UTC; the piece covers all prices effective up to and including this moment; continue from here.
        problems: answers of the source in this piece that are no prices.
    """

    prices: list[MarketPrice]
    up_to: datetime
    problems: tuple[Problem, ...] = ()


class PriceClient(Protocol):
    """One source, open; used by one thread at a time."""

    def markets(self) -> list[Market]:
        """Return every spot market that the source lists, by market_id.

        Raises:
            ExtractError: the source gave no usable answer.
        """

    def poll(self, wanted: Sequence[tuple[str, str]]) -> PollResult:
        """Return the newest price of each (market_id, price_type), in one batch where the source has one.

        Raises:
            ExtractError: the source as a whole gave no usable answer; a single market without a price is a `Problem`.
        """

    def history(
        self, market_id: str, price_type: str, granularity: str, start: datetime, end: datetime
    ) -> Iterator[HistoryPage]:
        """Yield the prices effective after `start` and until `end` (included), oldest first.

        Args:
            market_id: as `markets` names it.
            price_type: of the source's `history_types`.
            granularity: of the source's `granularities`.
            start, end: aware.

        Yields:
            Pages that adjoin; the last one reaches `end`. Times without a price have no entry.

        Raises:
            ExtractError: the source gave no usable answer; the pages yielded before remain valid.
            MarketUnknown: the source has no such market (any more).
        """

    def close(self) -> None:
        """Close the kept connections."""
