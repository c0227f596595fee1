"""States of networks: networks to read, and effects of a used-up budget."""

from pathlib import Path

import pytest

from pipelines.chain.states import mark_over_budget, record_healthy, record_unhealthy
from pipelines.raw.database import open_warehouse


@pytest.mark.parametrize("status", ["Healthy", "Inconsistent"])
def test_network_waits_after_past_data_used_up_its_budget(status: str, tmp_path: Path) -> None:
    with open_warehouse(tmp_path / "warehouse.duckdb") as connection:
        record_healthy(connection, "n", {"head_number": 9}, 9, 1, status)
        mark_over_budget(connection, "n", "used up")
        state = "select status, detail, failures_in_a_row from raw.network_states"
        assert connection.execute(state).fetchall() == [("Unreachable", "used up", 1)]


def test_network_in_error_keeps_its_reason_when_over_budget(tmp_path: Path) -> None:
    with open_warehouse(tmp_path / "warehouse.duckdb") as connection:
        record_healthy(connection, "n", {"head_number": 9}, 9, 1)
        record_unhealthy(connection, "n", "WrongChain", "eth_chainId", (None, None), "another chain", 2)
        mark_over_budget(connection, "n", "used up")
        assert connection.execute("select status, detail from raw.network_states").fetchall() == [
            ("WrongChain", "another chain")
        ]


@pytest.mark.parametrize("is_healthy", [True, False])
def test_time_of_a_status_is_corrected_after_the_clock_was_ahead(is_healthy: bool, tmp_path: Path) -> None:
    with open_warehouse(tmp_path / "warehouse.duckdb") as connection:
        for batch in (1, 2):
            if is_healthy:
                record_healthy(connection, "n", {"head_number": 9}, 9, batch)
            else:
                record_unhealthy(connection, "n", "WrongChain", "eth_chainId", (None, None), "another chain", batch)
            corrected = connection.execute("select status_since < '2900-01-01' from raw.network_states").fetchone()
            connection.execute("update raw.network_states set status_since = '2900-01-01'")
        assert corrected == (True,)
