"""Units that cannot be read: left out, tried again, and forgotten."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from unittest.mock import patch

import duckdb
import pytest

from pipelines.chain import unread as module
from pipelines.chain.unread import Unread
from pipelines.extract.errors import CallRefused, NodeUnreachable
from pipelines.extract.units import Unit
from tests.unit.pipelines.pricing import NOON, raw_warehouse

NETWORK = "local"
TOKEN = Unit("contract", "0x" + "aa" * 20)
CALL = Unit("call", "0x" + "bb" * 20, "0x18160ddd")
BLOCK = Unit("block", "0x" + "cc" * 20, "token", 7)
REFUSED = CallRefused(NETWORK, "eth_call", 5, 5, "the node refuses the call (code -32603)")
TIMED_OUT = NodeUnreachable(NETWORK, "eth_call", 5, 5, "the node: no answer", timed_out=True)
KINDS = ("contract", "call", "wallet", "block", "traces")


class Cycles:
    """Cycles at times of the test."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.now: datetime = NOON.replace(tzinfo=None)
        self.batch_id = 0
        self._connection = connection

    def next(self, pause: timedelta = timedelta(minutes=1)) -> Unread:
        self.now += pause
        self.batch_id += 1
        return Unread(self._connection, NETWORK, self.batch_id)


@pytest.fixture
def cycles() -> Iterator[Cycles]:
    with raw_warehouse() as raw:
        cycles = Cycles(raw.connection)
        with patch.object(module, "stored_now", lambda: cycles.now):
            yield cycles


def test_blamed_unit_is_tried_after_an_hour_and_then_at_doubled_intervals_up_to_a_day(cycles: Cycles) -> None:
    cycles.next().failed(TOKEN, REFUSED, is_proven=True)
    for hours in (1, 2, 4, 8, 16, 24, 24):
        assert not cycles.next(timedelta(hours=hours, minutes=-1)).due(KINDS)
        unread = cycles.next()
        error = unread.left_out(CALL, TOKEN)
        assert error is not None
        assert (error.call, error.detail) == ("eth_call", REFUSED.detail)
        assert unread.due(KINDS) == [TOKEN]
        unread.failed(TOKEN, REFUSED, is_proven=False)


def test_failure_that_may_pass_is_blamed_only_in_a_later_cycle(cycles: Cycles) -> None:
    unread = cycles.next()
    unread.failed(CALL, TIMED_OUT, is_proven=False)
    unread.failed(CALL, TIMED_OUT, is_proven=False)
    assert unread.left_out(CALL) is not None
    unread = cycles.next()
    assert unread.due(KINDS) == [CALL]
    unread.failed(CALL, TIMED_OUT, is_proven=False)
    assert not cycles.next(timedelta(minutes=58)).due(KINDS)
    assert cycles.next(timedelta(minutes=2)).due(KINDS) == [CALL]


def test_unit_that_was_read_is_forgotten(cycles: Cycles) -> None:
    cycles.next().failed(BLOCK, REFUSED, is_proven=True)
    unread = cycles.next(timedelta(hours=1))
    unread.worked(BLOCK)
    assert unread.left_out(BLOCK) is None
    assert unread.detail() is None
    assert cycles.next().left_out(BLOCK) is None


@pytest.mark.parametrize(("failing", "asked", "is_node"), [(20, 20, False), (21, 209, True), (21, 210, False)])
def test_where_more_than_20_and_a_tenth_of_all_fail_the_node_is_blamed(
    cycles: Cycles, failing: int, asked: int, is_node: bool
) -> None:
    unread = cycles.next()
    units = [Unit("contract", f"0x{number:040x}") for number in range(asked)]
    for number, unit in enumerate(units):
        assert unread.left_out(unit) is None
        if number < failing:
            unread.failed(unit, REFUSED, is_proven=True)
    told = unread.blame_the_node()
    assert (told is not None) == is_node
    if told is not None:
        assert told.startswith(f"the node failed for {failing} of {asked} contracts: eth_call")
    kept = [unit for unit in units if cycles.next().left_out(unit)]
    assert len(kept) == (0 if is_node else failing)


def test_status_counts_units_and_names_no_address(cycles: Cycles) -> None:
    unread = cycles.next()
    for unit in (TOKEN, CALL, BLOCK):
        unread.failed(unit, REFUSED, is_proven=True)
    detail = unread.detail()
    assert detail is not None
    assert "1 blocks of addresses, 1 calls of contracts, 1 contracts" in detail
    assert not any(unit.address in detail for unit in (TOKEN, CALL, BLOCK))


def test_unit_that_failed_while_the_clock_was_ahead_is_tried_again_at_once(cycles: Cycles) -> None:
    file = Unit("file", "0x", "transfers/1.parquet")
    unread = cycles.next(timedelta(days=1826))
    for unit in (TOKEN, file):
        unread.failed(unit, REFUSED, is_proven=True)
    unread = cycles.next(timedelta(days=-1826))
    assert unread.due(KINDS) == [TOKEN]
    assert unread.addresses_of("contract", is_waiting=True) == set()
    # A file is forgotten where it is not needed any more.
    assert unread.left_out(file) is None
