"""The windows of a price discovery, checked one by one."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.errors import Invalid
from control.pricing.discovery import Window, WindowSize, check_multiplier, count_windows, windows

EXACT = {WindowSize.MINUTE: 60, WindowSize.HOUR: 3600, WindowSize.DAY: 86_400, WindowSize.WEEK: 7 * 86_400}
CALENDAR = {WindowSize.MONTH: 1, WindowSize.QUARTER: 3, WindowSize.YEAR: 12}

INSTANTS = st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def listed(start: str, end: str, size: WindowSize, multiplier: str = "1") -> list[Window]:
    return list(windows(at(start), at(end), size, Decimal(multiplier)))


def starts(*rows: Window) -> list[date]:
    return [row.start.date() for row in rows]


def check_contiguous(found: list[Window], start: datetime, end: datetime) -> None:
    assert found[0].start == start
    assert found[-1].end == end
    assert all(before.end == after.start for before, after in pairwise(found))
    assert all(row.start < row.end for row in found)
    assert not any(row.is_partial for row in found[:-1])


@given(
    start=INSTANTS,
    size=st.sampled_from(list(EXACT)),
    steps=st.integers(1, 10_000),
    span=st.one_of(st.integers(1, 300_000_000), st.integers(1, 300).map(lambda whole: whole * 1_000_000)),
)
def test_fixed_windows_have_their_exact_length(start: datetime, size: WindowSize, steps: int, span: int) -> None:
    # Only multiples of these seconds have a finite decimal multiplier: its denominator has just the factors 2 and 5.
    seconds = steps * {60: 3, 3600: 9, 86_400: 27, 604_800: 189}[EXACT[size]]
    multiplier = Decimal(seconds) / EXACT[size]
    end = start + timedelta(microseconds=seconds * span)
    found = list(windows(start, end, size, multiplier))
    check_contiguous(found, start, end)
    length = timedelta(seconds=seconds)
    assert all(row.end - row.start == length for row in found[:-1])
    last = found[-1].end - found[-1].start
    assert found[-1].is_partial == (last < length)
    assert last <= length
    assert count_windows(start, end, size, multiplier) == len(found)


@given(start=INSTANTS, days=st.integers(1, 20_000), size=st.sampled_from(list(CALENDAR)), whole=st.integers(1, 30))
def test_calendar_windows_keep_the_day(start: datetime, days: int, size: WindowSize, whole: int) -> None:
    end = start + timedelta(days=days)
    found = list(windows(start, end, size, Decimal(whole)))
    check_contiguous(found, start, end)
    for number, row in enumerate(found):
        months = (row.start.year - start.year) * 12 + row.start.month - start.month
        assert months == number * whole * CALENDAR[size]
        is_last_day = (row.start + timedelta(days=1)).month != row.start.month
        assert row.start.day == start.day or (row.start.day < start.day and is_last_day)
        assert row.start.timetz() == start.timetz()
    assert count_windows(start, end, size, Decimal(whole)) == len(found)
    *_, following = windows(start, end + timedelta(days=1), size, Decimal(whole))
    assert found[-1].is_partial or following.start == end


def test_months_from_the_31st_return_to_the_31st() -> None:
    found = listed("2024-01-31T06:00", "2024-06-30T06:00", WindowSize.MONTH)
    assert starts(*found) == [
        date(2024, 1, 31),
        date(2024, 2, 29),
        date(2024, 3, 31),
        date(2024, 4, 30),
        date(2024, 5, 31),
    ]
    assert not found[-1].is_partial


def test_leap_day_years() -> None:
    found = listed("2024-02-29", "2028-03-01", WindowSize.YEAR)
    assert starts(*found) == [
        date(2024, 2, 29),
        date(2025, 2, 28),
        date(2026, 2, 28),
        date(2027, 2, 28),
        date(2028, 2, 29),
    ]
    assert found[-1] == Window(at("2028-02-29"), at("2028-03-01"), True)


def test_last_window_is_cut_and_marked() -> None:
    assert listed("2026-01-01", "2026-01-02T12:00", WindowSize.DAY) == [
        Window(at("2026-01-01"), at("2026-01-02"), False),
        Window(at("2026-01-02"), at("2026-01-02T12:00"), True),
    ]
    assert listed("2026-01-01", "2026-01-03", WindowSize.DAY)[-1].is_partial is False


def test_fractions_and_multiples() -> None:
    assert [row.end for row in listed("2026-01-01", "2026-01-02", WindowSize.DAY, "0.25")] == [
        at("2026-01-01T06:00"),
        at("2026-01-01T12:00"),
        at("2026-01-01T18:00"),
        at("2026-01-02"),
    ]
    assert len(listed("2026-01-01", "2026-01-02", WindowSize.MINUTE, "1440")) == 1
    assert len(listed("2026-01-01T00:00:00", "2026-01-01T00:01:00", WindowSize.MINUTE, "0.05")) == 20


def test_window_beyond_the_calendar_is_cut() -> None:
    for size in (WindowSize.WEEK, WindowSize.YEAR):
        assert listed("2026-01-01", "2026-02-01", size, "1000000") == [Window(at("2026-01-01"), at("2026-02-01"), True)]


@pytest.mark.parametrize(
    ("size", "text", "canonical"),
    [
        (WindowSize.MINUTE, "1.50", "1.5"),
        (WindowSize.DAY, "1e-4", None),
        (WindowSize.DAY, "0.0625", "0.0625"),
        (WindowSize.WEEK, "1e1", "10"),
        (WindowSize.MONTH, "2.0", "2"),
        (WindowSize.HOUR, "1000000", "1000000"),
        (WindowSize.HOUR, "1000000.5", None),
        (WindowSize.MINUTE, "0.01", None),
        (WindowSize.MONTH, "0.5", None),
        (WindowSize.QUARTER, "1.5", None),
        (WindowSize.YEAR, "1.000000000000000001", None),
        (WindowSize.DAY, "0", None),
        (WindowSize.DAY, "-1", None),
        (WindowSize.DAY, "NaN", None),
        (WindowSize.DAY, "Infinity", None),
        (WindowSize.DAY, "1e-999999", None),
        (WindowSize.DAY, "1e999999", None),
        (WindowSize.MINUTE, "0.333333333333333333", None),
    ],
)
def test_multipliers(size: WindowSize, text: str, canonical: str | None) -> None:
    if canonical is not None:
        assert check_multiplier(size, Decimal(text)) == canonical
        return
    with pytest.raises(Invalid) as caught:
        check_multiplier(size, Decimal(text))
    assert caught.value.field == "multiplier"
