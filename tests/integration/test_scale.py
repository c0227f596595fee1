"""The benchmark of builds runs, and its hand-written SQL and the models agree."""

from pathlib import Path

import pytest

from tests.bench import scale
from tests.bench.measurement import Measurement


@pytest.mark.slow
def test_hand_written_sql_and_the_models_agree_over_a_first_and_a_later_build(tmp_path: Path) -> None:
    size = scale.Size(rows=20_000, new=1_000, published=0)
    measured: list[Measurement] = []
    # It compares what both computed after each build.
    scale.run(tmp_path, 1, lambda _: None, measured, size)
    assert {"full build: CPU", "1,000 new: CPU", "1,000 new: peak memory"} <= {row.quantity for row in measured}
