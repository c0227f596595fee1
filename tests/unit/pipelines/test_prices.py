"""The raw tables of prices: unique storage, time of visibility, and marks of changed pairs."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from pipelines.due import next_due
from pipelines.prices.routes import update_routes
from pipelines.prices.store import (
    lists_due,
    polls_due,
    read_markets,
    record_failed_list,
    record_failed_poll,
    record_turns,
    replace_markets,
    store_poll,
)
from tests.snapshots import changed, record, with_tables
from tests.unit.pipelines.pricing import (
    NOON,
    SOURCES,
    Polled,
    Raw,
    listed,
    manual_price,
    pair,
    polled,
    pricing,
    raw_warehouse,
    switched_off,
)

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
INTERVALS = {"src_kraken": MINUTE}


@pytest.fixture
def raw() -> Iterator[Raw]:
    with raw_warehouse() as warehouse:
        yield warehouse


def _naive(instant: datetime) -> datetime:
    return instant.replace(tzinfo=None)


def _list(raw: Raw, *markets: tuple[str, str], source_id: str = "src_kraken") -> None:
    replace_markets(raw.connection, source_id, [listed(*codes) for codes in markets], raw.batch)


def _route(raw: Raw) -> int:
    return update_routes(raw.connection, SOURCES, raw.batch)


def _poll(raw: Raw, *prices: Polled, at: datetime = NOON + HOUR) -> int:
    return store_poll(raw.connection, "src_kraken", prices, [], _naive(at), MINUTE, raw.batch)


def _begun(raw: Raw, *pairs: object) -> None:
    """Run a cycle with these pairs, lists and routes, and a second one without changes."""
    set_up = pricing(*pairs)  # type: ignore[arg-type]
    raw.snapshot(set_up)
    _list(raw, ("BTC", "USD"), ("ETH", "USD"), ("EUR", "USD"), ("ETH", "BTC"))
    _route(raw)
    raw.snapshot(set_up)
    assert raw.changes() == {}


def test_only_pairs_with_a_changed_configuration_are_marked(raw: Raw) -> None:
    first, second, third = pair(1), pair(2, "ETH"), pair(3, "EUR")
    raw.snapshot(pricing(first, second, third))
    assert raw.changes() == {1: None, 2: None, 3: None}
    raw.snapshot(pricing(first, second, third))
    assert raw.changes() == {}
    raw.snapshot(pricing(first, changed(second, max_jump="10"), third))
    assert raw.changes() == {2: None}
    raw.snapshot(pricing(first, changed(second, max_jump="10")))
    assert raw.changes() == {3: None}
    raw.snapshot(pricing(first, changed(second, max_jump="10"), sources=("src_kraken", "src_gemini")))
    assert raw.changes() == {1: None, 2: None}
    reviewed = pricing(first, changed(second, max_jump="10"), sources=("src_kraken", "src_gemini"))
    raw.snapshot(with_tables(reviewed, price_reviews=[record("control_price_reviews", 2, "price_x", "Accepted")]))
    assert raw.changes() == {2: None}
    raw.snapshot(with_tables(reviewed, price_reviews=[record("control_price_reviews", 2, "price_x", "Rejected")]))
    assert raw.changes() == {2: None}


def test_switch_of_a_source_affects_polls_but_not_stored_prices(raw: Raw) -> None:
    _begun(raw, pair(1))
    assert polls_due(raw.connection, INTERVALS) == {"src_kraken": [("BTCUSD", "Trade")]}
    raw.snapshot(pricing(pair(1), switches=[switched_off("ten_a", "src_kraken")]))
    assert raw.changes() == {}
    assert polls_due(raw.connection, INTERVALS) == {}
    # Another tenant's switch is its own.
    raw.snapshot(pricing(pair(1), switches=[switched_off("ten_b", "src_kraken")]))
    assert polls_due(raw.connection, INTERVALS) == {"src_kraken": [("BTCUSD", "Trade")]}


def test_manual_prices_are_exact_and_mark_from_the_earliest_moment(raw: Raw) -> None:
    fund = pair(1, "FUND", price_type="NAV")
    set_up = pricing(fund, pair(2), sources=("src_nav",))
    long = "99999999999999999999.123456789012345678"
    raw.snapshot(set_up, [manual_price(1, "1.5", NOON)])
    _route(raw)
    raw.snapshot(set_up, [manual_price(2, long, NOON + HOUR), manual_price(3, "2", NOON - HOUR, 2)])
    assert raw.changes() == {1: NOON - HOUR}
    assert raw.query("select price, effective_from from raw.control_manual_prices order by manual_price_key") == [
        (Decimal("1.5"), _naive(NOON)),
        (Decimal(long), _naive(NOON + HOUR)),
        (Decimal(2), _naive(NOON - HOUR)),
    ]
    assert raw.query("select status, derivation, leg_number, supported_pair_key from raw.pair_routes order by all") == [
        ("NoMarket", None, 0, None),
        ("Resolved", "Manual", 1, 7),
    ]


def test_routes_follow_the_list_and_are_rewritten_only_if_changed(raw: Raw) -> None:
    set_up = pricing(
        pair(1),
        pair(2, "USD", "BTC", price_type="Ask", allow_inverse=True),
        pair(3, "ETH", "EUR", allow_inverse=True, bridge="USD"),
        pair(4, "EUR", "BTC"),
    )
    raw.snapshot(set_up)
    assert _route(raw) == 4
    assert {row[0] for row in raw.query("select status from raw.pair_routes")} == {"Pending"}
    raw.snapshot(set_up)
    _list(raw, ("BTC", "USD"), ("ETH", "USD"), ("EUR", "USD"))
    assert _route(raw) == 4
    assert raw.changes() == {1: None, 2: None, 3: None, 4: None}
    columns = "pair_key, status, derivation, leg_number, market_id, price_type, is_inverted"
    assert raw.query(f"select {columns} from raw.pair_routes order by all") == [
        (1, "Resolved", "Direct", 1, "BTCUSD", "Trade", False),
        # Buying USD for BTC at the ask is selling BTC at its bid.
        (2, "Resolved", "Inverse", 1, "BTCUSD", "Bid", True),
        (3, "Resolved", "Bridge", 1, "ETHUSD", "Trade", False),
        (3, "Resolved", "Bridge", 2, "EURUSD", "Trade", True),
        (4, "NoMarket", None, 0, None, None, False),
    ]
    raw.snapshot(set_up)
    assert _route(raw) == 0
    assert raw.changes() == {}
    # A delisted market: its stored prices still count, but it is not polled.
    raw.snapshot(set_up)
    _list(raw, ("BTC", "USD"), ("EUR", "USD"))
    assert _route(raw) == 1
    assert raw.changes() == {3: None}
    assert raw.query(f"select {columns} from raw.pair_routes where pair_key = 3 order by all") == [
        (3, "MarketGone", "Bridge", 1, "ETHUSD", "Trade", False),
        (3, "MarketGone", "Bridge", 2, "EURUSD", "Trade", True),
    ]
    assert polls_due(raw.connection, INTERVALS) == {"src_kraken": [("BTCUSD", "Bid"), ("BTCUSD", "Trade")]}


def test_list_keeps_delisted_markets_with_the_time_last_seen(raw: Raw) -> None:
    raw.snapshot(pricing(pair(1)))
    assert lists_due(raw.connection) == ["src_kraken"]
    _list(raw, ("BTC", "USD"), ("ETH", "USD"))
    assert lists_due(raw.connection) == []
    first = raw.query("select market_id, last_listed_at from raw.markets order by all")
    raw.batch += 1
    _list(raw, ("BTC", "USD"), ("EUR", "USD"))
    rows = raw.query(
        "select market_id, is_active, first_listed_at, last_listed_at, batch_id from raw.markets order by all"
    )
    assert [row[:2] for row in rows] == [("BTCUSD", True), ("ETHUSD", False), ("EURUSD", True)]
    assert rows[1][3] == first[1][1]
    assert rows[0][2] == first[0][1]
    assert rows[0][3] > first[0][1]
    assert [row[4] for row in rows] == [1, 2, 2]
    assert [row[0] for row in read_markets(raw.connection, "src_kraken")] == ["BTCUSD", "EURUSD"]
    # A failure keeps the list and is recorded with it.
    record_failed_list(raw.connection, "src_kraken", "src_kraken: no answer", MINUTE, raw.batch)
    assert [row[0] for row in read_markets(raw.connection, "src_kraken")] == ["BTCUSD", "EURUSD"]
    assert raw.query("select market_count, error, failures_in_a_row from raw.market_lists") == [
        (2, "src_kraken: no answer", 1)
    ]


def test_poll_stores_each_price_once_and_marks_pairs_with_new_prices(raw: Raw) -> None:
    _begun(raw, pair(1), pair(2, "BTC", tenant_id="ten_b"), pair(3, "ETH"))
    assert _poll(raw, polled("100"), polled("9", market_id="ETHUSD")) == 2
    assert raw.changes() == {1: NOON, 2: NOON, 3: NOON}
    # The same price again only updates the time last seen.
    raw.batch += 1
    assert _poll(raw, polled("100"), at=NOON + 2 * HOUR) == 0
    assert raw.changes() == {}
    assert raw.query(
        "select price, first_collected_at, last_collected_at from raw.prices where market_id = 'BTCUSD'"
    ) == [(Decimal(100), _naive(NOON + HOUR), _naive(NOON + 2 * HOUR))]
    # Another price of the same moment replaces it.
    raw.batch += 1
    assert _poll(raw, polled("101"), polled("9.5", MINUTE, market_id="ETHUSD"), at=NOON + 3 * HOUR) == 2
    assert raw.changes() == {1: NOON, 2: NOON, 3: NOON + MINUTE}
    assert raw.query("select market_id, price, batch_id from raw.prices order by all") == [
        ("BTCUSD", Decimal(101), raw.batch),
        ("ETHUSD", Decimal(9), 2),
        ("ETHUSD", Decimal("9.5"), raw.batch),
    ]


def test_price_seen_again_becomes_visible_to_a_younger_pair(raw: Raw) -> None:
    _begun(raw, pair(1))
    _poll(raw, polled("100"), at=NOON + HOUR)
    younger = pair(2, "BTC", tenant_id="ten_b", created_at=NOON + 2 * HOUR)
    raw.snapshot(pricing(pair(1), younger))
    _route(raw)
    raw.batch += 1
    _poll(raw, polled("100"), at=NOON + 3 * HOUR)
    assert raw.changes() == {2: NOON}
    raw.batch += 1
    _poll(raw, polled("100"), at=NOON + 4 * HOUR)
    assert raw.changes() == {}


@pytest.mark.ci
def test_pair_created_after_a_poll_waits_for_the_next_interval(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds with and without a poll for other pairs in the current interval."""
    for others in ((), (pair(1),)):
        with raw_warehouse() as warehouse:
            _begun(warehouse, *others)
            monkeypatch.setattr("pipelines.prices.store.stored_now", lambda: _naive(NOON) + timedelta(seconds=5))
            assert bool(polls_due(warehouse.connection, INTERVALS)) == bool(others)
            record_turns(warehouse.connection, INTERVALS, _naive(NOON) + timedelta(seconds=5))
            warehouse.snapshot(pricing(*others, pair(2, "BTC", tenant_id="ten_b", price_type="Bid")))
            _list(warehouse, ("BTC", "USD"))
            _route(warehouse)
            due = []
            for seconds in (30, 59, 60):
                now = _naive(NOON) + timedelta(seconds=seconds)
                monkeypatch.setattr("pipelines.prices.store.stored_now", lambda now=now: now)
                due.append(("BTCUSD", "Bid") in polls_due(warehouse.connection, INTERVALS).get("src_kraken", []))
            assert due == [False, False, True]


def test_failing_source_is_polled_less_often_and_has_a_failing_since(raw: Raw) -> None:
    _begun(raw, pair(1))
    now = _naive(NOON)
    for second in (0, 1, 59):
        polled_at = now + timedelta(seconds=second)
        due = [next_due(polled_at, MINUTE, failures) - now for failures in (0, 1, 2, 3, 6, 9)]
        assert due == [minutes * MINUTE for minutes in (1, 1, 2, 4, 32, 32)]
    assert next_due(now + HOUR, 7 * HOUR) == next_due(now + 2 * HOUR, 7 * HOUR)
    _poll(raw, polled("100"))
    (well,) = raw.query("select error, failures_in_a_row, status_since, price_count from raw.price_polls")
    record_failed_poll(raw.connection, "src_kraken", "src_kraken: 503", MINUTE, raw.batch)
    (failed,) = raw.query("select error, failures_in_a_row, status_since, due_at from raw.price_polls")
    record_failed_poll(raw.connection, "src_kraken", "src_kraken: 503", MINUTE, raw.batch)
    (again,) = raw.query("select error, failures_in_a_row, status_since, due_at from raw.price_polls")
    assert well[:2] == (None, 0)
    assert well[3] == 1
    assert failed[:2] == ("src_kraken: 503", 1)
    assert failed[2] != well[2]
    assert again[1:3] == (2, failed[2])
    assert again[3] > failed[3]  # type: ignore[operator]
    assert polls_due(raw.connection, INTERVALS) == {}


def test_source_polled_while_the_clock_was_ahead_is_due_at_once(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = NOON + timedelta(days=1826)
    monkeypatch.setattr("pipelines.prices.store.stored_now", lambda: _naive(ahead))
    _begun(raw, pair(1))
    _poll(raw, polled("100"), at=ahead)
    record_turns(raw.connection, INTERVALS, _naive(ahead))
    monkeypatch.setattr("pipelines.prices.store.stored_now", lambda: _naive(NOON))
    assert lists_due(raw.connection) == ["src_kraken"]
    assert list(polls_due(raw.connection, INTERVALS)) == ["src_kraken"]
    _list(raw, ("BTC", "USD"))
    _poll(raw, polled("100"), at=NOON)
    record_turns(raw.connection, INTERVALS, _naive(NOON))
    assert lists_due(raw.connection) == []
    assert polls_due(raw.connection, INTERVALS) == {}
