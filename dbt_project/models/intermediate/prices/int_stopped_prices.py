"""Prices of guarded pairs that fail a guard.

A price is compared with the newest *used* price of its source, so the result depends on all earlier prices. It is a
fold in time order; SQL would need one step of recursion per price.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

_UNITS_OF_A_HUNDRED = 100 * 10**18


class Price(NamedTuple):
    """A source's price; prices and percentages are integers of 10^-18, instants microseconds since 1970.

    `known_state` is its state if an earlier build judged it; `price` is None if no type can represent it.
    """

    pair_key: int
    effective_us: int
    source_id: str
    price: int | None
    fresh_until_us: int | None
    max_jump: int | None
    max_deviation: int | None
    decision: str | None
    known_state: str | None


def exceeds(price: int, reference: int, percent: int) -> bool:
    """Return whether a price differs from a reference by more than a percentage (of 10^-18) of it, exactly."""
    return abs(price - reference) * _UNITS_OF_A_HUNDRED > percent * reference


class PairGuards:
    """The newest price, and the newest used one, of each source of one pair so far."""

    def __init__(self) -> None:
        self._newest: dict[str, Price] = {}
        self._used: dict[str, int] = {}

    def record(self, price: Price) -> None:
        """Store a price as the newest of its source; a rejected one does not count."""
        if price.decision == "Rejected":
            return
        self._newest[price.source_id] = price

    def failures(self, price: Price) -> list[str]:
        """Return the names of the guards that the next price fails. It is used unless a guard or a review stops it."""
        if price.price is None:
            return []
        if price.known_state is not None:
            if price.known_state != "Quarantined":
                self._used[price.source_id] = price.price
            return []
        failed = [name for name, fails in (("Jump", self._jumps(price)), ("Deviation", self._deviates(price))) if fails]
        if price.decision == "Accepted" or (price.decision is None and not failed):
            self._used[price.source_id] = price.price
        return failed

    def _jumps(self, price: Price) -> bool:
        used = self._used.get(price.source_id)
        if price.max_jump is None or used is None:
            return False
        assert price.price is not None
        return exceeds(price.price, used, price.max_jump)

    def _deviates(self, price: Price) -> bool:
        """Compare with the median of the other sources' newest fresh prices; both twice, to stay integers."""
        if price.max_deviation is None:
            return False
        others = sorted(
            newest.price
            for source_id, newest in self._newest.items()
            if source_id != price.source_id
            and newest.price is not None
            and (newest.fresh_until_us is None or price.effective_us < newest.fresh_until_us)
        )
        if not others:
            return False
        assert price.price is not None
        twice_median = others[(len(others) - 1) // 2] + others[len(others) // 2]
        return exceeds(2 * price.price, twice_median, price.max_deviation)


def stopped(prices: Iterable[Price]) -> Iterator[tuple[int, str, int, str]]:
    """Judge prices in order of pair and instant.

    Returns:
        Pair, source, instant and the guards' names, per price that fails one, regardless of its review.
    """
    for pair_key, of_pair in groupby(prices, key=attrgetter("pair_key")):
        guards = PairGuards()
        for effective_us, together in groupby(of_pair, key=attrgetter("effective_us")):
            at_once = list(together)
            for price in at_once:
                guards.record(price)
            for price in at_once:
                failed = guards.failures(price)
                if failed:
                    yield pair_key, price.source_id, effective_us, ", ".join(failed)


def model(dbt: Any, session: Any) -> Any:
    """Return one row per price that fails a guard."""
    dbt.config(materialized="replaced_table")
    units = "replace({0}::varchar, '.', '')::hugeint"
    rows = (
        dbt.ref("int_composed_prices")
        .filter("is_guarded")
        .project(
            f"pair_key, epoch_us(effective_from), source_id, {units.format('price')}, epoch_us(fresh_until), "
            f"{units.format('max_jump')}, {units.format('max_deviation')}, decision, known_state"
        )
        .order("1, 2, 3")
        .fetchall()
    )
    found = list(stopped(Price._make(row) for row in rows))
    columns = list(zip(*found, strict=True)) or [()] * 4
    return session.sql(
        """
        select
            unnest($pairs::bigint[]) as pair_key,
            unnest($sources::varchar[]) as source_id,
            make_timestamp(unnest($instants::bigint[])) as effective_from,
            unnest($reasons::varchar[]) as reason
        """,
        params=dict(zip(("pairs", "sources", "instants", "reasons"), columns, strict=True)),
    )
