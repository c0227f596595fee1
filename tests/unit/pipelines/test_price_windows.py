"""Prices of windows against a search through all prices, and the step sizes used to read windows."""

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.pricing.discovery import Window, WindowSize, windows
from pipelines.prices.discovery_store import WindowPrice
from pipelines.prices.windows import WindowFill, WindowSegment, plan

START = datetime(2025, 3, 1, tzinfo=UTC)
CANDLES = ("1m", "5m", "15m", "30m", "1h", "1d")


@dataclass(frozen=True)
class Priced:
    effective_from: datetime
    price: Decimal


def minutes(count: int) -> datetime:
    return START + timedelta(minutes=count)


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=8),
    moments=st.sets(st.integers(1, 60), max_size=25),
    pages=st.lists(st.integers(0, 60), max_size=6),
    killed_after=st.integers(0, 7),
)
def test_each_window_has_its_last_price_despite_pages_and_interruptions(
    lengths: list[int], moments: set[int], pages: list[int], killed_after: int
) -> None:
    bounds = [sum(lengths[:number]) for number in range(len(lengths) + 1)]
    asked = [Window(minutes(first), minutes(last), False) for first, last in itertools.pairwise(bounds)]
    end = bounds[-1]
    prices = [Priced(minutes(moment), Decimal(moment)) for moment in sorted(moments) if moment <= end]
    fill, found, gaps, reached = WindowFill(asked), [], [], 0
    for number, up_to in enumerate(sorted({*(page for page in pages if page < end), end})):
        if number == killed_after:
            fill = WindowFill(asked, fill.done, fill.pending)
        page = [price for price in prices if minutes(reached) < price.effective_from <= minutes(up_to)]
        more, without = fill.take(page, minutes(up_to))
        found, gaps, reached = found + more, gaps + without, up_to

    expected = {}
    for window in asked:
        inside = [price for price in prices if window.start < price.effective_from <= window.end]
        if inside:
            expected[window.start] = WindowPrice(window.start, window.end, inside[-1].price, False)
    assert found == list(expected.values())
    empty = {minute for start, stop in gaps for minute in range(_minute(start), _minute(stop))}
    assert empty == {
        minute
        for window in asked
        if window.start not in expected
        for minute in range(_minute(window.start), _minute(window.end))
    }
    assert fill.done == len(asked)


def _minute(instant: datetime) -> int:
    return (instant - START) // timedelta(minutes=1)


def test_price_at_a_window_end_belongs_to_that_window() -> None:
    fill = WindowFill([Window(minutes(0), minutes(1), False), Window(minutes(1), minutes(2), True)])
    found, gaps = fill.take([Priced(minutes(1), Decimal(7))], minutes(2))
    assert found == [WindowPrice(minutes(0), minutes(1), Decimal(7), False)]
    assert gaps == [(minutes(1), minutes(2))]


@pytest.mark.parametrize(
    ("start", "end", "size", "multiplier", "expected"),
    [
        ("2025-01-01", "2025-01-08", "day", "1", ["1d"]),
        ("2025-01-01", "2025-03-01", "month", "1", ["1d"]),
        ("2025-01-01", "2025-01-04", "day", "1.5", ["1h"]),
        ("2025-01-01", "2025-01-02", "hour", "0.5", ["30m"]),
        ("2025-01-01", "2025-01-02", "minute", "10", ["5m"]),
        # The bounds decide, not only the length.
        ("2025-01-01T06:00:00", "2025-01-08T06:00:00", "day", "1", ["1h"]),
        ("2025-01-01T00:00:30", "2025-01-02T00:00:30", "day", "1", ["1m"]),
        # Only the cut window is read in fine steps.
        ("2025-01-01", "2025-01-08T10:15:00", "day", "1", ["1d", "15m"]),
        ("2025-01-01", "2025-01-08T10:15:07", "day", "1", ["1d", "1m"]),
        ("2025-01-01T00:00:00", "2025-01-01T10:00:00", "day", "1", ["1h"]),
    ],
)
def test_windows_are_read_in_the_coarsest_steps_that_fit(
    start: str, end: str, size: str, multiplier: str, expected: list[str]
) -> None:
    asked = list(windows(day(start), day(end), WindowSize(size), Decimal(multiplier)))
    segments = plan(asked, CANDLES)
    assert [segment.granularity for segment in segments] == expected
    assert (segments[0].start, segments[-1].end) == (day(start), day(end))
    assert all(left.end == right.start for left, right in itertools.pairwise(segments))


@pytest.mark.parametrize("granularities", [("round",), ("1d",)])
def test_source_with_one_step_size_is_read_in_that_step(granularities: tuple[str]) -> None:
    asked = list(windows(day("2025-01-01"), day("2025-01-01T05:30:00"), WindowSize.HOUR, Decimal(1)))
    assert plan(asked, granularities) == [
        WindowSegment(day("2025-01-01"), day("2025-01-01T05:30:00"), granularities[0])
    ]
