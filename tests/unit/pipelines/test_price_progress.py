"""Progress of prices after a cycle: when the sensor starts the next cycle, and the recorded errors."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from control.clock import stored_now
from pipelines.defs.decide import has_price_work
from pipelines.deliver.progress import NetworkProgress, Progress, read_progress, write_progress
from pipelines.prices.discovery_store import (
    Part,
    WindowPrice,
    begin_discovery,
    open_discoveries,
    open_readings,
    store_part,
)
from pipelines.prices.routes import update_routes
from pipelines.prices.store import record_failed_list, record_failed_poll, record_turns, replace_markets, store_poll
from pipelines.raw.builds import (
    has_prices_to_build,
    is_behind,
    record_publication,
    record_transform,
    was_read_to_end,
)
from pipelines.tenants.versions import advance, transform_due
from tests.unit.pipelines.pricing import SOURCES, Raw, discovery, listed, pair, polled, pricing, raw_warehouse

MINUTE = timedelta(minutes=1)
# An interval that does not end while tests run.
AGE = timedelta(days=100_000)


@pytest.fixture
def raw() -> Iterator[Raw]:
    with raw_warehouse() as warehouse:
        warehouse.query("insert into raw.control_revisions values (1)")
        yield warehouse


def _end_cycle(raw: Raw, folder: Path) -> Progress:
    now = stored_now()
    raw.query("insert into raw.batches values (?, 'run', ?, ?)", raw.batch, now, now)
    return write_progress(raw.connection, folder, raw.batch)


def _publish(raw: Raw) -> None:
    advance(raw.connection, raw.batch, 300)
    record_transform(raw.connection, raw.batch, "fingerprint")
    record_publication(raw.connection, raw.batch, raw.batch)


def _poll(raw: Raw, price: str, interval: timedelta = AGE) -> None:
    now = stored_now()
    at = now.replace(tzinfo=UTC) - datetime(2026, 5, 1, 12, tzinfo=UTC)
    store_poll(raw.connection, "src_kraken", [polled(price, at)], [], now, interval, raw.batch)


def test_source_is_due_until_polled_and_again_after_its_interval(raw: Raw, tmp_path: Path) -> None:
    assert not has_price_work(None)
    raw.snapshot(pricing())
    assert not has_price_work(_end_cycle(raw, tmp_path))
    raw.snapshot(pricing(pair(1)))
    assert has_price_work(_end_cycle(raw, tmp_path))
    replace_markets(raw.connection, "src_kraken", [listed("BTC", "USD")], raw.batch)
    update_routes(raw.connection, SOURCES, raw.batch)
    assert has_price_work(_end_cycle(raw, tmp_path))
    _poll(raw, "100")
    progress = _end_cycle(raw, tmp_path)
    assert not has_price_work(progress)
    assert progress.price_sources["src_kraken"].in_last_cycle
    raw.batch += 1
    _poll(raw, "100", timedelta(microseconds=1))
    assert has_price_work(_end_cycle(raw, tmp_path))


def test_failure_of_a_source_stays_but_is_an_error_only_of_its_cycle(raw: Raw, tmp_path: Path) -> None:
    raw.snapshot(pricing(pair(1)))
    assert has_price_work(_end_cycle(raw, tmp_path))
    raw.batch += 1
    record_failed_list(raw.connection, "src_kraken", "src_kraken: markets: HTTP 503", MINUTE, raw.batch)
    after = _end_cycle(raw, tmp_path)
    assert read_progress(tmp_path) == after
    assert not has_price_work(after)
    assert after.errors == ["src_kraken: markets: HTTP 503"]
    raw.batch += 1
    later = _end_cycle(raw, tmp_path)
    assert (later.errors, later.price_sources["src_kraken"].trouble) == ([], "src_kraken: markets: HTTP 503")


@pytest.mark.parametrize("error", ["local: eth_chainId: refused", "block 7 changed while it was being read"])
def test_an_error_names_its_network_once(raw: Raw, tmp_path: Path, error: str) -> None:
    """The network's price feeds fail with it, in the same call."""
    raw.snapshot(pricing(pair(1)))
    record_failed_list(raw.connection, "src_kraken", "local: eth_chainId: refused", MINUTE, raw.batch)
    network = NetworkProgress(**dict.fromkeys(NetworkProgress.__struct_fields__) | {"error": error})
    progress = msgspec.structs.replace(_end_cycle(raw, tmp_path), networks={"local": network})
    assert progress.errors[0].count("local: ") == 1
    assert progress.errors[0].endswith(error)
    assert progress.errors.count("local: eth_chainId: refused") == 1


def test_unfinished_discovery_is_work_but_needs_no_build(raw: Raw, tmp_path: Path) -> None:
    raw.snapshot(pricing(pair(1)))
    _publish(raw)
    asked = discovery(1, 1, "2026-04-01T00:00:00Z", "2026-04-02T00:00:00Z")
    raw.snapshot(pricing(pair(1), discoveries=[asked]))
    progress = _end_cycle(raw, tmp_path)
    assert progress.has_unfinished_discoveries
    assert has_price_work(progress)
    assert not progress.is_behind
    assert not transform_due(raw.connection, 300)


def test_completely_read_discovery_needs_a_publication(raw: Raw, tmp_path: Path) -> None:
    raw.snapshot(pricing(pair(1), discoveries=[discovery(1, 1, "2026-04-01T00:00:00Z", "2026-04-03T00:00:00Z")]))
    (waiting,) = open_discoveries(raw.connection)
    start = datetime(2026, 4, 1, tzinfo=UTC)
    end = start + timedelta(days=2)
    begin_discovery(raw.connection, waiting, (start, end), 2, [("src_kraken", "BTC/USD", "Trade")], {})
    _publish(raw)
    cycle = raw.batch
    for is_last in (False, True):
        raw.batch += 1
        (reading,) = open_readings(raw.connection)
        window = WindowPrice(reading.up_to, reading.up_to + timedelta(days=1), Decimal(5), False)
        part = Part([window], [], window.effective_from, None, 1 + is_last, is_last)
        store_part(raw.connection, reading, part, stored_now(), raw.batch)
        assert is_behind(raw.connection)
        assert was_read_to_end(raw.connection, cycle) is is_last
    # A later run that failed to publish it is not the run that read it.
    assert not was_read_to_end(raw.connection, raw.batch)


def test_marts_are_due_for_new_prices_and_for_newly_failing_sources(raw: Raw) -> None:
    raw.snapshot(pricing(pair(1)))
    replace_markets(raw.connection, "src_kraken", [listed("BTC", "USD")], raw.batch)
    update_routes(raw.connection, SOURCES, raw.batch)
    _poll(raw, "100")
    assert transform_due(raw.connection, 300)
    _publish(raw)
    assert not transform_due(raw.connection, 300)
    assert raw.query("select count(*) from raw.price_changes") == [(0,)]
    raw.batch += 1
    _poll(raw, "101")
    assert transform_due(raw.connection, 300)
    _publish(raw)
    record_failed_poll(raw.connection, "src_kraken", "no answer", MINUTE, raw.batch)
    assert transform_due(raw.connection, 300)
    _publish(raw)
    record_failed_poll(raw.connection, "src_kraken", "no answer", MINUTE, raw.batch)
    assert not transform_due(raw.connection, 300)


def test_prices_are_built_while_pairs_exist_and_once_afterwards(raw: Raw) -> None:
    assert not has_prices_to_build(raw.connection)
    raw.snapshot(pricing(pair(1)))
    _publish(raw)
    assert has_prices_to_build(raw.connection)
    raw.batch += 1
    raw.snapshot(pricing())
    assert has_prices_to_build(raw.connection)
    _publish(raw)
    assert not has_prices_to_build(raw.connection)


@pytest.mark.parametrize("table", ["market_lists set tried_at", "price_polls set polled_at", "price_turns set turn_at"])
def test_source_is_due_if_its_last_request_is_ahead_of_the_clock(table: str, raw: Raw, tmp_path: Path) -> None:
    raw.snapshot(pricing(pair(1)))
    replace_markets(raw.connection, "src_kraken", [listed("BTC", "USD")], raw.batch)
    update_routes(raw.connection, SOURCES, raw.batch)
    _poll(raw, "100")
    record_turns(raw.connection, {"src_kraken": AGE}, stored_now())
    assert not has_price_work(_end_cycle(raw, tmp_path))
    raw.query(f"update raw.{table} = '2900-01-01'")
    raw.batch += 1
    assert has_price_work(_end_cycle(raw, tmp_path))


@pytest.mark.parametrize("table", ["price_polls set status_since", "transforms set finished_at"])
def test_times_ahead_of_the_clock_neither_hide_changes_nor_repeat_builds(table: str, raw: Raw) -> None:
    raw.snapshot(pricing(pair(1)))
    replace_markets(raw.connection, "src_kraken", [listed("BTC", "USD")], raw.batch)
    update_routes(raw.connection, SOURCES, raw.batch)
    _poll(raw, "100")
    _publish(raw)
    raw.query(f"update raw.{table} = '2900-01-01'")
    assert is_behind(raw.connection) == table.startswith("transforms")
    raw.batch += 1
    # The time shown is corrected by the next poll.
    _poll(raw, "100")
    assert raw.query("select max(status_since) < '2900-01-01' from raw.price_polls") == [(True,)]


def test_a_state_with_one_wrong_byte_is_as_a_missing_one(raw: Raw, tmp_path: Path) -> None:
    raw.snapshot(pricing(pair(1)))
    _end_cycle(raw, tmp_path)
    path = tmp_path / "progress.json"
    whole = path.read_bytes()
    assert read_progress(tmp_path) is not None
    damages = (
        whole.replace(b"src_kraken", b"src_krak\xffn"),
        re.sub(rb'"due_at":"[0-9]', b'"due_at":"O', whole),
        re.sub(rb'("due_at":"[^"]*?)(Z|[+]00:00)"', rb'\1"', whole),
    )
    for damaged in damages:
        assert damaged != whole
        path.write_bytes(damaged)
        assert read_progress(tmp_path) is None
