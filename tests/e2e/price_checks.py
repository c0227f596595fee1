"""Compares prices and values of the API with the rounds of the feeds and the node's balances, number by number.

It uses integers and `Decimal`, and none of the service's code. Prices are the demo's rounds on chain and its manual
prices, windows are computed again, quantities are the node's. The functions do not call the API.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext
from typing import Any

from tests.chain.world import Token, World
from tests.e2e.checks import Chain, Verdict, decimal_text

_VALUE_DECIMALS = 18
_DAY = timedelta(days=1)
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, order=True)
class Quote:
    """A price: the instant from which it is in effect, and the window that it closes (zero: a point)."""

    effective_from: datetime
    price: Decimal
    window: timedelta = timedelta(0)


class Timeline:
    """The prices of one pair with one source, and which of them is in force.

    Args:
        quotes: any order.
        max_age: of the pair.
    """

    def __init__(self, quotes: Sequence[Quote], max_age: timedelta) -> None:
        # Of two for one instant the shorter window counts; a point is the shortest.
        self._quotes = sorted(quotes, key=lambda quote: (quote.effective_from, -quote.window))
        self._starts = [quote.effective_from for quote in self._quotes]
        self._max_age = max_age

    def at(self, moment: datetime) -> Decimal | None:
        """Return the price in force: the newest at or before the moment, unless it is too old."""
        position = bisect_right(self._starts, moment) - 1
        if position < 0:
            return None
        quote = self._quotes[position]
        return quote.price if moment - quote.effective_from <= max(self._max_age, quote.window) else None


def windows_of(points: Sequence[Quote], start: datetime, end: datetime, length: timedelta) -> list[Quote]:
    """Cut [start, end) into windows and return the last point of each that has one, in effect from the window's end."""
    found = []
    while start < end:
        finish = min(start + length, end)
        inside = [point for point in points if start < point.effective_from <= finish]
        if inside:
            found.append(Quote(finish, max(inside).price, finish - start))
        start = finish
    return found


def value_text(raw: int, decimals: int, price: Decimal) -> str:
    """Write quantity x price: exact, rounded half to even to 18 decimals, canonical."""
    with localcontext() as context:
        context.prec = 200
        exact = Decimal(raw).scaleb(-decimals) * price
        units = int(exact.scaleb(_VALUE_DECIMALS).to_integral_value(rounding="ROUND_HALF_EVEN"))
    return decimal_text(units, _VALUE_DECIMALS)


def check_price_history(points: Sequence[Quote], windows: Sequence[Quote], rows: Sequence[dict[str, Any]]) -> Verdict:
    """Check a source's prices: they have exactly the expected windows, and every point is one of the source's.

    A poll only reads the latest round, so some rounds may have no point.
    """
    verdict = Verdict()
    true_windows = {(quote.effective_from, quote.effective_from - quote.window): quote.price for quote in windows}
    true_points = {quote.effective_from: quote.price for quote in points}
    for row in rows:
        at, shown = _instant(row["effectiveFrom"]), Decimal(row["price"])
        if row["windowStart"] is None:
            verdict.count(verdict.differs(f"price of {at}", shown, true_points.get(at)))
        else:
            true = true_windows.pop((at, _instant(row["windowStart"])), None)
            verdict.count(verdict.differs(f"price of the window to {at}", shown, true))
    for at, start in true_windows:
        verdict.count(f"the window {start} to {at} is not listed")
    return verdict


def shown_points(rows: Sequence[dict[str, Any]]) -> list[Quote]:
    """Return the points, checked before, that a source's price history lists."""
    return [Quote(_instant(row["effectiveFrom"]), Decimal(row["price"])) for row in rows if row["windowStart"] is None]


def check_activity_values(
    timelines: Mapping[str, tuple[int, Timeline]], asset: str | None, pages: Sequence[dict[str, Any]]
) -> Verdict:
    """Check the value of each activity: amount x the price at its own moment.

    Args:
        timelines: decimals and prices by lower-case address of the asset; other assets have no value.
        asset: the asset of all activities, for a token; None: each activity has its own.
        pages: pages of the answer.
    """
    verdict = Verdict()
    for row in (row for page in pages for row in page["data"]):
        address = asset or row["token"]["ledgerId"].lower()
        price = timelines[address][1].at(_instant(row["date"])) if address in timelines else None
        true = None if price is None else value_text(int(row["amountRaw"]), timelines[address][0], price)
        verdict.count(verdict.differs(f"value of {row['id']}", row["value"], true))
    return verdict


def check_cap_table_values(timeline: Timeline, decimals: int, pages: Sequence[dict[str, Any]]) -> Verdict:
    """Check the value of each holding, at the moment of the answer."""
    verdict = Verdict()
    price = timeline.at(_instant(pages[0]["asOf"]["blockTime"]))
    for row in (row for page in pages for row in page["data"]):
        true = None if price is None else value_text(int(row["quantityRaw"]), decimals, price)
        verdict.count(verdict.differs(f"value of {row['wallet']}", row["value"], true))
    return verdict


@dataclass(frozen=True)
class PastMoment:
    """A moment for requests: its text in the request, its end (not included), and the last block before the end."""

    text: str
    end: datetime
    block: int

    @property
    def at(self) -> datetime:
        """The instant of the prices: just before the end."""
        return self.end - _INSTANT


def past_moments(chain: Chain, history: Sequence[dict[str, Any]], as_of: dict[str, Any]) -> list[PastMoment]:
    """Choose finished days that are covered, and an instant inside of each but the first.

    Args:
        chain: the chain.
        history: days of a token's capitalization or of a wallet's value.
        as_of: the moment of that answer.
    """
    days = [row for row in history if row["isComplete"]]
    found = []
    for row in [days[place] for place in sorted({0, len(days) // 2, len(days) - 1})] if days else []:
        at, block = _end_of_day(chain, row, as_of)
        found.append(PastMoment(row["date"], at + _INSTANT, block))
        if row is not days[0]:
            instant = at - timedelta(hours=10, minutes=52, microseconds=654_321)
            end = instant + _INSTANT
            found.append(PastMoment(instant.isoformat(), end, _last_before(chain, end, block)))
    return found


def check_cap_table_then(
    timeline: Timeline,
    decimals: int,
    moment: PastMoment,
    truth: tuple[int, Mapping[str, int]],
    pages: Sequence[dict[str, Any]],
    day: dict[str, Any] | None,
) -> Verdict:
    """Check a cap table of a past moment with the node, at the price of that moment, and with the day's capitalization.

    Args:
        timeline: the token's prices.
        decimals: the token's decimals.
        moment: the requested moment.
        truth: supply and balances of the listed holders at the moment's last block, from the node, in base units.
        pages: of GET /v1/tokens/{tokenId}/cap-table with `asOf`.
        day: the point of the capitalization with the same end; None: there is none.
    """
    verdict, (supply, balances), head = Verdict(), truth, pages[0]
    price = timeline.at(moment.at)
    rows = [row for page in pages for row in page["data"]]
    verdict.count(
        verdict.differs(f"moment of {moment.text}", _instant(head["asOf"]["at"]), moment.at),
        verdict.differs(f"supply at {moment.text}", head["totalSupplyRaw"], str(supply)),
        verdict.differs(f"held at {moment.text}", sum(int(row["quantityRaw"]) for row in rows), sum(balances.values())),
    )
    for row in rows:
        held = balances[row["wallet"]]
        true = None if price is None else value_text(held, decimals, price)
        what = f"{row['wallet']} at {moment.text}"
        verdict.count(verdict.differs(what, (row["quantityRaw"], row["value"]), (str(held), true)))
    if day is not None:
        shown = (day["supply"], day["price"])
        verdict.count(
            verdict.differs(
                f"capitalization of {moment.text}",
                shown,
                (head["totalSupply"], None if price is None else _plain(price)),
            )
        )
    return verdict


def check_balances_then(
    moment: PastMoment, balances: Mapping[str, int], answer: dict[str, Any], day: dict[str, Any] | None
) -> Verdict:
    """Check a wallet's positions of a past moment with the node, and their sum with the day of its value history.

    Args:
        moment: the requested moment.
        balances: the node's balances at the moment's last block in base units, by address of the asset or `native`.
        answer: of GET /v1/wallets/{walletId}/balances with `asOf`.
        day: the point of the value history with the same end; None: there is none.
    """
    verdict = Verdict()
    shown = {row["token"]["ledgerId"].lower(): int(row["quantityRaw"]) for row in answer["current"]}
    verdict.count(
        verdict.differs(f"moment of {moment.text}", _instant(answer["asOf"]["at"]), moment.at),
        verdict.differs(f"positions at {moment.text}", shown, {name: held for name, held in balances.items() if held}),
    )
    if day is not None:
        with localcontext() as context:
            context.prec = 200
            values = [Decimal(row["value"]) for row in answer["current"] if row["value"] is not None]
            total = _plain(sum(values, Decimal(0))) if values or not answer["current"] else None
        verdict.count(verdict.differs(f"value of {moment.text}", day["value"], total))
    return verdict


def check_capitalization(world: World, token: Token, timeline: Timeline, answer: dict[str, Any]) -> Verdict:
    """Check supply, price and value of each day against the node's `totalSupply` at the last block of the day."""
    verdict = Verdict()
    for row in answer["history"]:
        if row["supplyStatus"] == "NotCovered":
            # Collected from its creation on: not covered is right where there was no contract yet, and nowhere else.
            _, block = _end_of_day(world, row, answer["asOf"])
            is_there = world.node.rpc("eth_getCode", [token.address, hex(block)]) != "0x"
            verdict.count(
                verdict.differs(f"contract on {row['date']}", "not there", "there" if is_there else "not there")
            )
            continue
        moment, block = _moment(world, row, answer["asOf"])
        supply, price = world.total_supply(token, block), timeline.at(moment)
        verdict.count(
            verdict.differs(f"supply on {row['date']}", row["supply"], decimal_text(supply, token.decimals or 0)),
            verdict.differs(f"price on {row['date']}", row["price"], None if price is None else _plain(price)),
            verdict.differs(
                f"capitalization on {row['date']}",
                row["value"],
                None if price is None else value_text(supply, token.decimals or 0, price),
            ),
        )
    return verdict


def check_value_history(
    chain: Chain,
    wallet: str,
    assets: Mapping[str, tuple[str, int]],
    timelines: Mapping[str, tuple[int, Timeline]],
    answer: dict[str, Any],
) -> Verdict:
    """Check each day of a wallet: the value of its balances on the node, and the assets without a price.

    Args:
        chain: the chain.
        wallet: its address, as the chain has it.
        assets: symbol and decimals of everything it can hold, by address.
        timelines: as in `check_activity_values`.
        answer: of GET /v1/wallets/{walletId}/value-history at 1d.
    """
    verdict = Verdict()
    for row in answer["points"]:
        if row["valueStatus"] == "NotCovered":
            # Views begin after the genesis block.
            _, block = _end_of_day(chain, row, answer["asOf"])
            verdict.count(verdict.differs(f"last block on {row['date']}", 0, block))
            continue
        moment, block = _moment(chain, row, answer["asOf"])
        total, is_priced, unpriced = Decimal(0), False, set()
        for address, (symbol, decimals) in assets.items():
            held = chain.held(address, wallet, block)
            price = timelines[address][1].at(moment) if held and address in timelines else None
            if held and price is None:
                unpriced.add(symbol)
            elif held and price is not None:
                with localcontext() as context:
                    context.prec = 200
                    total += Decimal(value_text(held, decimals, price))
                is_priced = True
        true = _plain(total) if is_priced or not unpriced else None
        verdict.count(
            verdict.differs(f"value on {row['date']}", row["value"], true),
            verdict.differs(f"unpriced on {row['date']}", sorted(row["unpriced"]), sorted(unpriced)),
            verdict.differs(f"complete on {row['date']}", row["valueComplete"], not unpriced),
        )
    return verdict


def _moment(chain: Chain, row: dict[str, Any], as_of: dict[str, Any]) -> tuple[datetime, int]:
    """Return the moment that a day's numbers are of, and the last block at it."""
    if not row["isComplete"]:
        return _instant(as_of["blockTime"]), int(as_of["blockNumber"])
    return _end_of_day(chain, row, as_of)


def _end_of_day(chain: Chain, row: dict[str, Any], as_of: dict[str, Any]) -> tuple[datetime, int]:
    """Return the last instant of a day, and the last block at it."""
    end = datetime.combine(date.fromisoformat(row["date"]), datetime.min.time(), UTC) + _DAY
    return end - _INSTANT, _last_before(chain, end, int(as_of["blockNumber"]))


def _last_before(chain: Chain, end: datetime, high: int) -> int:
    """Return the last block before an instant, of those up to a block."""
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        if chain.block_time(middle) < end.timestamp():
            low = middle
        else:
            high = middle - 1
    return low


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
