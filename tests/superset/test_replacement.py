"""New versions of the marts under load: no query fails, each sees one version wholly, at last all see the newest."""

import shutil
import threading
from functools import partial
from pathlib import Path

import duckdb
import pytest

from tests.api.world import World
from tests.browser.configured import LUMEN_ID
from tests.superset.service import Superset, rows_of
from tests.waiting import eventually

pytestmark = pytest.mark.release

READERS, VERSIONS = 4, 8


def test_a_version_is_replaced_under_load(superset: Superset, world: World) -> None:
    guest = superset.guest(superset.claims(world.tenant_id))
    chart = guest.charts(superset.provisioned("cap-table")["embeddedId"])["Total supply"]
    current = world.settings.serving_dir / "current.duckdb"
    kept = current.with_name("kept.duckdb")
    shutil.copyfile(current, kept)
    seen: list[tuple[int, str]] = []
    problems: list[str] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            answer = guest.query(chart, ["holder_count", "total_supply_exact"])
            if answer.status_code != 200:
                problems.append(answer.text[:300])
                return
            [row] = rows_of(answer)
            seen.append((row["holder_count"], row["total_supply_exact"]))

    def is_seen_or_failed(count: int) -> bool:
        return bool(problems) or any(row[0] == count for row in list(seen))

    readers = [threading.Thread(target=read) for _ in range(READERS)]
    try:
        for reader in readers:
            reader.start()
        for version in range(1, VERSIONS + 1):
            _replace(kept, current, world.subject_keys[LUMEN_ID], 1000 + version)
            eventually(partial(is_seen_or_failed, 1000 + version), f"version {version} is seen")
        [newest] = rows_of(guest.query(chart, ["holder_count"]))
        assert newest["holder_count"] == 1000 + VERSIONS
    finally:
        done.set()
        for reader in readers:
            reader.join()
        _rename(kept, current)
    assert problems == []
    assert all(supply == str(count) for count, supply in seen if count > 1000)


def _replace(source: Path, current: Path, subject_key: int, count: int) -> None:
    """Make a version with two equal columns, and publish it under the stable name."""
    made = current.with_name(f"made-{count}.duckdb")
    shutil.copyfile(source, made)
    with duckdb.connect(str(made)) as connection:
        connection.execute(
            "update marts.cap_table_summaries set holder_count = ?, total_supply = ?::varchar where subject_key = ?",
            [count, count, subject_key],
        )
        connection.execute("force checkpoint")
    _rename(made, current)


def _rename(made: Path, current: Path) -> None:
    made.rename(current)
