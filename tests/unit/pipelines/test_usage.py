"""The rest of a network's daily request budget, by kind of work."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import pytest

from pipelines.raw.usage import read_budget, record_usage
from pipelines.rows import RpcUsage, UsageRecord, WorkClass
from tests.unit.pipelines.pricing import Raw, raw_warehouse

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC).replace(tzinfo=None)
MIDNIGHT = NOON + timedelta(hours=12)


class Clock:
    """A clock that only tests advance."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("pipelines.raw.usage.stored_now", found)
    return found


@pytest.fixture
def raw(clock: Clock) -> Iterator[Raw]:
    with raw_warehouse() as found:
        yield found


def bound(raw: Raw, most: int | None) -> None:
    raw.connection.execute("delete from raw.networks")
    raw.connection.execute(
        "insert into raw.networks values ('n', 'N', 'evm', 1, true, true, null, 'ETH', 18, ?, null)", [most]
    )


def spend(raw: Raw, purpose: WorkClass, requests: int, network: str = "n") -> None:
    record_usage(raw.connection, network, UsageRecord(purpose, "token", RpcUsage(requests, 10 * requests), 5, 7))


def test_requests_are_summed_by_day_purpose_and_work(raw: Raw, clock: Clock) -> None:
    spend(raw, WorkClass.HISTORY, 3)
    spend(raw, WorkClass.HISTORY, 9)
    spend(raw, WorkClass.LIVE, 1)
    record_usage(raw.connection, "n", UsageRecord(WorkClass.LIVE, "other", RpcUsage(0, 0)))
    clock.now = MIDNIGHT
    spend(raw, WorkClass.HISTORY, 4)
    found = raw.connection.execute("from raw.requests_spent order by day, purpose").fetchall()
    assert found == [
        ("n", date(2026, 5, 1), "History", "token", 12, 120, 10, 14, 9),
        ("n", date(2026, 5, 1), "Live", "token", 1, 10, 5, 7, 1),
        ("n", date(2026, 5, 2), "History", "token", 4, 40, 5, 7, 4),
    ]
    assert read_budget(raw.connection, "n").spent == {"History": 4}


def test_network_without_a_budget_never_waits(raw: Raw) -> None:
    bound(raw, None)
    spend(raw, WorkClass.LIVE, 10**9)
    spend(raw, WorkClass.HISTORY, 10**9)
    assert read_budget(raw.connection, "n").waits_until is None


@pytest.mark.parametrize(
    ("live", "others", "waits"),
    [
        (0, [], False),
        (99, [], False),
        (100, [], True),
        (500, [], True),
        (50, [20], False),
        (50, [20, 10], False),
        (50, [20, 10, 1], True),
        (50, [26], True),
        (0, [150], True),
        (0, [50], False),
        (0, [51], True),
    ],
)
def test_other_work_uses_the_budget_left_by_live_tracking(raw: Raw, live: int, others: list[int], waits: bool) -> None:
    """A piece may start if the day's largest piece fits in the rest of 100 requests; the first always may."""
    bound(raw, 100)
    spend(raw, WorkClass.LIVE, live)
    spend(raw, WorkClass.LIVE, 1000, network="another")
    for number, requests in enumerate(others):
        spend(raw, (WorkClass.HISTORY, WorkClass.SECOND_READING)[number % 2], requests)
    assert read_budget(raw.connection, "n").waits_until == (MIDNIGHT if waits else None)


def test_use_of_live_tracking_on_the_previous_day_is_reserved_for_it(raw: Raw, clock: Clock) -> None:
    bound(raw, 100)
    spend(raw, WorkClass.LIVE, 70)
    spend(raw, WorkClass.HISTORY, 1000)
    clock.now = MIDNIGHT
    assert read_budget(raw.connection, "n").waits_until is None
    spend(raw, WorkClass.LIVE, 10)
    spend(raw, WorkClass.HISTORY, 15)
    assert read_budget(raw.connection, "n").waits_until is None
    spend(raw, WorkClass.HISTORY, 1)
    assert read_budget(raw.connection, "n").waits_until == MIDNIGHT + timedelta(days=1)
    clock.now = MIDNIGHT + timedelta(days=1)
    spend(raw, WorkClass.HISTORY, 45)
    assert read_budget(raw.connection, "n").waits_until is None
