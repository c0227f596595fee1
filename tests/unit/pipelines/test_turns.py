"""Turns of networks in the collection of history."""

from types import SimpleNamespace
from typing import Any

from pipelines.history.turns import in_turn, last_served, record_turn
from tests.unit.pipelines.pricing import raw_warehouse

NETWORKS: dict[str, Any] = {name: SimpleNamespace(name=name) for name in ("slow", "quick", "late")}


def test_network_that_waits_longest_comes_first_in_the_next_slice() -> None:
    with raw_warehouse() as raw:

        def order() -> list[str]:
            return [network.name for network in in_turn(raw.connection, NETWORKS)]

        assert order() == ["slow", "quick", "late"]
        record_turn(raw.connection, "slow")
        assert order() == ["quick", "late", "slow"]
        record_turn(raw.connection, "late")
        record_turn(raw.connection, "slow")
        assert order() == ["quick", "late", "slow"]


def test_rows_that_were_served_last_stay_known() -> None:
    with raw_warehouse() as raw:
        assert last_served(raw.connection, "slow") == ""
        record_turn(raw.connection, "slow", "token 0xaa")
        record_turn(raw.connection, "slow")
        record_turn(raw.connection, "quick", "wallet 0xbb")
        assert [last_served(raw.connection, name) for name in NETWORKS] == ["token 0xaa", "wallet 0xbb", ""]
