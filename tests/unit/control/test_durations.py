"""Durations of exact length."""

import pytest

from control.errors import Invalid
from control.pricing.durations import read_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("P1D", 86_400),
        ("PT90M", 5_400),
        ("P2W", 1_209_600),
        ("P35D", 3_024_000),
        ("P1DT1H1M1S", 90_061),
        ("PT1S", 1),
        ("P0DT36H", 129_600),
        ("P3650D", 315_360_000),
    ],
)
def test_exact_lengths_are_read(text: str, seconds: int) -> None:
    assert read_duration("maxAge", text) == seconds


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "malformed"),
        ("P", "malformed"),
        ("PT", "malformed"),
        ("P1DT", "malformed"),
        ("1D", "malformed"),
        ("P1", "malformed"),
        ("p1d", "malformed"),
        ("P-1D", "malformed"),
        ("P1.5D", "malformed"),
        ("PT0.5S", "malformed"),
        ("P1W1D", "malformed"),
        ("P1H", "malformed"),
        ("P1D\n", "malformed"),
        ("P٣D", "malformed"),
        ("P1M", "not-exact"),
        ("P1Y", "not-exact"),
        ("P1Y2M3DT4H", "not-exact"),
        ("P0D", "out-of-range"),
        ("PT0S", "out-of-range"),
        ("P3651D", "out-of-range"),
        ("P3650DT1S", "out-of-range"),
        ("P999999999W", "out-of-range"),
    ],
)
def test_other_durations_are_refused_by_name(text: str, code: str) -> None:
    with pytest.raises(Invalid) as caught:
        read_duration("maxAge", text)
    assert (caught.value.field, caught.value.code) == ("maxAge", code)
