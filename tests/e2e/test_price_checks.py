"""The demo's comparison of prices and values: it accepts the truth, and finds each kind of untruth."""

import copy
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.e2e.price_checks import (
    PastMoment,
    Quote,
    Timeline,
    check_activity_values,
    check_balances_then,
    check_cap_table_then,
    check_cap_table_values,
    check_price_history,
    value_text,
    windows_of,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
POINTS = [Quote(NOON + minutes * timedelta(minutes=1), Decimal(price)) for minutes, price in ((0, 1), (30, 2), (90, 3))]


def text(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%SZ}"


def test_windows_close_with_their_last_price_and_count_from_their_end() -> None:
    windows = windows_of(POINTS, NOON - HOUR, NOON + 5 * HOUR / 2, HOUR)
    assert windows == [
        Quote(NOON, Decimal(1), HOUR),
        Quote(NOON + HOUR, Decimal(2), HOUR),
        Quote(NOON + 2 * HOUR, Decimal(3), HOUR),
    ]
    assert windows_of(POINTS, NOON, NOON + HOUR / 2, HOUR) == [Quote(NOON + HOUR / 2, Decimal(2), HOUR / 2)]


def test_a_price_counts_from_its_instant_until_it_is_too_old() -> None:
    timeline = Timeline([Quote(NOON, Decimal(5)), Quote(NOON + HOUR, Decimal(7), 3 * HOUR)], HOUR / 2)
    moment = timedelta(microseconds=1)
    found = [timeline.at(NOON + after) for after in (-moment, 0 * HOUR, HOUR / 2, HOUR / 2 + moment)]
    assert found == [None, Decimal(5), Decimal(5), None]
    assert [timeline.at(NOON + HOUR + after) for after in (3 * HOUR, 3 * HOUR + moment)] == [Decimal(7), None]


@pytest.mark.parametrize(
    ("raw", "decimals", "price", "value"),
    [
        (2**256 - 1, 0, "0.000000000000000001", f"{(2**256 - 1) // 10**18}.{(2**256 - 1) % 10**18:018}".rstrip("0")),
        (10**12 * 10**18, 18, "1000000", "1000000000000000000"),
        (5, 1, "0.000000000000000001", "0"),
        (15, 1, "0.000000000000000001", "0.000000000000000002"),
        (25, 1, "0.000000000000000001", "0.000000000000000002"),
    ],
)
def test_values_are_exact_and_rounded_half_to_even(raw: int, decimals: int, price: str, value: str) -> None:
    assert value_text(raw, decimals, Decimal(price)) == value


def honest_history() -> list[dict[str, Any]]:
    return [
        {"effectiveFrom": text(NOON + HOUR), "windowStart": text(NOON), "price": "2"},
        {"effectiveFrom": text(NOON + HOUR / 2), "windowStart": None, "price": "2.00"},
    ]


def test_a_true_price_history_agrees() -> None:
    verdict = check_price_history(POINTS, windows_of(POINTS, NOON, NOON + HOUR, HOUR), honest_history())
    assert (verdict.problems, verdict.total) == ([], 2)


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[0].update(price="3"),
        lambda rows: rows[1].update(price="1"),
        lambda rows: rows[1].update(effectiveFrom=text(NOON + HOUR)),
        lambda rows: rows[0].update(windowStart=text(NOON - HOUR)),
        lambda rows: rows.pop(0),
    ],
)
def test_an_untrue_price_history_is_found(change: Any) -> None:
    rows = honest_history()
    change(rows)
    assert check_price_history(POINTS, windows_of(POINTS, NOON, NOON + HOUR, HOUR), rows).problems


def test_a_past_moment_is_checked() -> None:
    moment = PastMoment(text(NOON + HOUR / 4), NOON + HOUR / 4 + timedelta(microseconds=1), 7)
    as_of = {"at": text(moment.at)}
    row = {"wallet": "0x2", "quantityRaw": "250", "value": "2.5"}
    pages = [{"asOf": as_of, "totalSupplyRaw": "250", "totalSupply": "2.5", "data": [row]}]
    day = {"supply": "2.5", "price": "1", "value": "2.5"}
    timeline = Timeline(POINTS, HOUR)

    def problems(truth: tuple[int, dict[str, int]], pages: Any, day: Any) -> list[str]:
        return check_cap_table_then(timeline, 2, moment, truth, pages, day).problems

    assert not problems((250, {"0x2": 250}), pages, day)
    assert problems((251, {"0x2": 250}), pages, day)
    assert problems((250, {"0x2": 249}), pages, day)
    assert problems((250, {"0x2": 250}), pages, day | {"price": "2"})
    assert problems((250, {"0x2": 250}), [pages[0] | {"data": [row | {"value": "5"}]}], day)
    assert problems((250, {"0x2": 250}), [pages[0] | {"asOf": {"at": text(NOON)}}], day)

    held = {"asOf": as_of, "current": [{"token": {"ledgerId": "0xA"}, "quantityRaw": "250", "value": "2.5"}]}
    assert not check_balances_then(moment, {"0xa": 250, "native": 0}, held, day).problems
    assert check_balances_then(moment, {"0xa": 250, "native": 1}, held, day).problems
    assert check_balances_then(moment, {"0xa": 250}, held, day | {"value": "2"}).problems
    assert check_balances_then(moment, {"0xa": 250}, held | {"asOf": {"at": text(NOON)}}, day).problems


def test_values_of_rows_are_checked() -> None:
    timeline = Timeline(POINTS, HOUR)
    activities = [
        {"data": [{"id": "act_1", "date": text(NOON + HOUR), "amountRaw": "150", "value": "3", "token": None}]},
        {"data": [{"id": "act_2", "date": text(NOON - HOUR), "amountRaw": "150", "value": None, "token": None}]},
    ]
    timelines = {"0x1": (2, timeline)}
    assert not check_activity_values(timelines, "0x1", activities).problems
    assert check_activity_values({}, "0x1", activities).problems
    untrue = copy.deepcopy(activities)
    untrue[1]["data"][0]["value"] = "1.5"
    assert check_activity_values(timelines, "0x1", untrue).problems
    pages = [{"asOf": {"blockTime": text(NOON)}, "data": [{"wallet": "0x2", "quantityRaw": "250", "value": "2.5"}]}]
    assert not check_cap_table_values(timeline, 2, pages).problems
    pages[0]["data"][0]["value"] = "2.50"
    assert check_cap_table_values(timeline, 2, pages).problems
