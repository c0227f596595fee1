"""The benchmark of builds runs, and its hand-written SQL and the models agree."""

from pathlib import Path

import pytest

from tests.bench import scale
from tests.bench.measurement import Measurement
from tests.bench.transfers import make_warehouse
from tests.integration.dbt_runner import Stores, run_dbt


@pytest.mark.release
def test_hand_written_sql_and_the_models_agree_over_a_first_and_a_later_build(tmp_path: Path) -> None:
    size = scale.Size(rows=20_000, new=1_000, published=0)
    measured: list[Measurement] = []
    # It compares what both computed after each build.
    scale.run(tmp_path, 1, lambda _: None, measured, size)
    assert {"full build: CPU", "1,000 new: CPU", "1,000 new: peak memory"} <= {row.quantity for row in measured}


@pytest.mark.release
def test_a_full_build_is_divided_by_the_memory_limit(tmp_path: Path) -> None:
    """A limit of 256 MB has 500 bytes for each of 512,000 transfers. Below 2 GB, activities have more stretches."""
    stores = Stores(tmp_path)
    make_warehouse(stores.warehouse, 550_000)
    run_dbt(stores, "run", memory_mb=256)
    (balances,) = tmp_path.glob("target/run/**/int_balance_points.sql")
    assert "set variable shares = 2;" in balances.read_text()
    (activities,) = tmp_path.glob("target/run/**/token_activities.sql")
    assert "set variable to_block" in activities.read_text()
