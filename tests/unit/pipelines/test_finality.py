"""Settled blocks."""

from datetime import timedelta

import pytest

from pipelines.chain.finality import read_known_chain, settle
from tests.unit.pipelines.pricing import NOON, raw_warehouse


@pytest.mark.proof("a block is settled only after it was final for an hour")
def test_a_block_that_was_final_for_an_hour_is_settled_and_not_after_59_minutes() -> None:
    began = NOON.replace(tzinfo=None)
    with raw_warehouse() as raw:
        columns = "network, block_number, block_hash, block_time, batch_id"
        raw.connection.execute(f"insert into raw.blocks ({columns}) values ('n', 7, '0x', ?, 1)", [began])

        def settled_after(minutes: int) -> int:
            settle(raw.connection, "n", 7, began + timedelta(minutes=minutes))
            return read_known_chain(raw.connection, "n").settled_number

        assert [settled_after(minutes) for minutes in (0, 59, 60)] == [-1, -1, 7]


def test_candidate_of_a_clock_that_was_ahead_is_replaced_and_not_settled() -> None:
    began = NOON.replace(tzinfo=None)
    with raw_warehouse() as raw:
        columns = "network, block_number, block_hash, block_time, batch_id"
        raw.connection.execute(f"insert into raw.blocks ({columns}) values ('n', 7, '0x', ?, 1)", [began])
        settled = []
        for since in (timedelta(days=1826), timedelta(), timedelta(hours=1)):
            settle(raw.connection, "n", 7, began + since)
            settled.append(read_known_chain(raw.connection, "n").settled_number)
        assert settled == [-1, -1, 7]
