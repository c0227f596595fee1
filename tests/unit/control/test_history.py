"""Bounds of history requests: accepted texts and their canonical forms."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.errors import Invalid
from control.history import Bound, BoundKind, parse_bound, parse_range

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("creation", Bound("creation", BoundKind.CREATION)),
        ("now", Bound("now", BoundKind.NOW)),
        ("block:0", Bound("block:0", BoundKind.BLOCK, block=0)),
        ("block:0017", Bound("block:17", BoundKind.BLOCK, block=17)),
        (f"block:{2**63 - 1}", Bound(f"block:{2**63 - 1}", BoundKind.BLOCK, block=2**63 - 1)),
        ("2026-01-31", Bound("2026-01-31", BoundKind.INSTANT, instant=NOON.replace(hour=0))),
        ("2026-01-31T12:00:00Z", Bound("2026-01-31T12:00:00Z", BoundKind.INSTANT, instant=NOON)),
        ("2026-01-31t12:00z", Bound("2026-01-31T12:00:00Z", BoundKind.INSTANT, instant=NOON)),
        ("2026-01-31T12:00:00", Bound("2026-01-31T12:00:00Z", BoundKind.INSTANT, instant=NOON)),
        ("2026-01-31T14:00:00+02:00", Bound("2026-01-31T12:00:00Z", BoundKind.INSTANT, instant=NOON)),
        (
            "2026-01-31T12:00:00.25Z",
            Bound("2026-01-31T12:00:00.250000Z", BoundKind.INSTANT, instant=NOON.replace(microsecond=250_000)),
        ),
    ],
)
def test_bounds(text: str, bound: Bound) -> None:
    assert parse_bound(text) == bound
    assert parse_bound(bound.text) == bound


@given(st.integers(0, 10**17), st.integers(-14 * 60, 14 * 60))
def test_instant_is_the_same_in_any_zone_and_after_storing(microseconds: int, minutes: int) -> None:
    instant = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=microseconds)
    bound = parse_bound(instant.astimezone(timezone(timedelta(minutes=minutes))).isoformat())
    assert bound.instant == instant
    assert parse_bound(bound.text) == bound


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "malformed"),
        ("Now", "malformed"),
        ("yesterday", "malformed"),
        ("17", "malformed"),
        ("block:", "malformed"),
        ("block:-1", "malformed"),
        ("block:1.5", "malformed"),
        ("block:\u0663", "malformed"),
        (f"block:{2**63}", "out-of-range"),
        (f"block:{10**19}", "out-of-range"),
        (f"block:{'9' * 5_000}", "out-of-range"),
        ("2026-02-30", "malformed"),
        ("2026-1-1", "malformed"),
        ("2026-01-31T25:00:00Z", "malformed"),
        ("0001-01-01T00:00:00+14:00", "out-of-range"),
        ("2026-01-31T12:00:00Z\n", "malformed"),
        ("x" * 10_000, "malformed"),
    ],
)
def test_invalid_bounds_are_refused(text: str, code: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_bound(text, "to")
    assert (caught.value.field, caught.value.code) == ("to", code)
    assert len(caught.value.detail) < 250


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("creation", "now"),
        ("creation", "block:0"),
        ("block:5", "block:5"),
        ("block:5", "2020-01-01"),
        ("2026-01-31", "2026-01-31T00:00:01Z"),
        ("2999-01-01", "now"),
    ],
)
def test_ranges(start: str, end: str) -> None:
    assert parse_range(start, end) == (parse_bound(start), parse_bound(end))


@pytest.mark.parametrize(
    ("start", "end", "field", "code"),
    [
        ("now", "now", "from", "unsupported-bound"),
        ("creation", "creation", "to", "unsupported-bound"),
        ("soon", "now", "from", "malformed"),
        ("creation", "soon", "to", "malformed"),
        ("block:6", "block:5", "to", "empty-range"),
        ("2026-01-31", "2026-01-31", "to", "empty-range"),
        ("2026-01-31T12:00:00Z", "2026-01-31T13:00:00+02:00", "to", "empty-range"),
    ],
)
def test_invalid_ranges_are_refused(start: str, end: str, field: str, code: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_range(start, end)
    assert (caught.value.field, caught.value.code) == (field, code)
