"""Tenants that get a new data version by the next build: after own changes, or after a period."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import duckdb
import pytest

from pipelines.raw.database import create_tables
from pipelines.tenants.versions import advance, is_any_due

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC).replace(tzinfo=None)
PERIOD = 300


class Scene:
    """Two tenants with own tokens on one network, and finished builds."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection, self.now, self.batch, self.version = connection, NOON, 1, 0
        connection.execute(
            """
            insert into raw.control_tenants values ('a', 'A', 1), ('b', 'B', 1);
            insert into raw.control_subjects values
                (1, 'tok_1', 'token', 'a', 'led', 'n', '0x1', null, null, null, null, '2026-01-01', null, null),
                (2, 'tok_2', 'token', 'b', 'led', 'n', '0x2', null, null, null, null, '2026-01-01', null, null);
            insert into raw.view_ranges values
                ('Window', 1, 1, 'n', 10, null, null),
                ('Window', 2, 2, 'n', 10, 90, null);
            insert into raw.network_states by name select
                'n' as network, 'Healthy' as status, '2026-01-01'::timestamp as status_since, 20 as head_number,
                12 as final_number, 0 as failures_in_a_row, '2026-01-01'::timestamp as probed_at, 1 as batch_id;
            """
        )
        self.collect(20)

    def collect(self, to_block: int) -> None:
        """Mark all tokens as collected up to a block, without rows."""
        self.connection.execute(
            "update raw.network_states set head_number = ?, final_number = ?", [to_block, to_block - 8]
        )
        self.connection.execute("delete from raw.coverage")
        for address in ("0x1", "0x2"):
            self.connection.execute(
                "insert into raw.coverage values ('n', 'token', ?, 10, ?, 0, 'node', '2026-01-01', 1, null)",
                [address, to_block],
            )

    def mark(self, subject: int, block: int, reason: str = "Rows") -> None:
        """Mark a change in a block."""
        self.connection.execute(
            "insert into raw.changes values (?, ?, ?, ?, ?)", [self.batch, subject, block, block, reason]
        )

    def advance(self) -> list[str]:
        """Begin the next build."""
        return advance(self.connection, self.version, PERIOD, self.now)

    def build(self, *, is_published: bool = True) -> list[str]:
        """Build a second later; return the tenants with a new data version."""
        self.now += timedelta(seconds=1)
        moved = self.advance()
        self.connection.execute(
            "create schema if not exists intermediate; "
            "create or replace table intermediate.int_views_transformed as from raw.visible_ranges"
        )
        self.connection.execute("delete from raw.transforms")
        self.connection.execute("insert into raw.transforms values (?, 1, '', ?)", [self.batch, self.now])
        self.batch += 1
        self.version += is_published
        return moved

    def numbers(self) -> dict[str, int]:
        """Return each tenant's newest data version."""
        return dict(
            self.connection.execute(
                "select tenant_id, max(data_version) from raw.tenant_versions group by tenant_id"
            ).fetchall()
        )

    def shown(self) -> dict[int, list[int]]:
        """Return last covered, newest and newest final block of each subject, as tenants see them."""
        return {
            key: found
            for key, *found in self.connection.execute(
                """
                select subject_key, max(to_block), any_value(head_number), any_value(final_number)
                from raw.visible_ranges inner join raw.visible_heads using (subject_key)
                group by subject_key order by subject_key
                """
            ).fetchall()
        }


@pytest.fixture
def scene() -> Iterator[Scene]:
    with duckdb.connect() as connection:
        create_tables(connection)
        yield Scene(connection)


def test_new_tenant_sees_everything(scene: Scene) -> None:
    assert is_any_due(scene.connection, PERIOD, scene.now)
    assert scene.build() == ["a", "b"]
    assert scene.numbers() == {"a": 1, "b": 1}
    assert scene.shown() == {1: [20, 20, 12], 2: [20, 20, 12]}
    assert not is_any_due(scene.connection, PERIOD, scene.now)
    assert scene.build() == []


def test_changes_of_one_tenant_do_not_affect_the_other(scene: Scene) -> None:
    scene.build()
    scene.collect(30)
    scene.mark(1, 25)
    assert scene.build() == ["a"]
    assert scene.numbers() == {"a": 2, "b": 1}
    assert scene.shown() == {1: [30, 30, 22], 2: [20, 20, 12]}


def test_a_new_period_shows_blocks_without_rows(scene: Scene) -> None:
    scene.build()
    scene.collect(30)
    scene.now = NOON + timedelta(seconds=PERIOD - 2)
    assert scene.build() == []
    assert not is_any_due(scene.connection, PERIOD, NOON + timedelta(seconds=PERIOD - 1))
    assert is_any_due(scene.connection, PERIOD, NOON + timedelta(seconds=PERIOD))
    scene.now = NOON + timedelta(seconds=PERIOD)
    assert scene.build() == ["a", "b"]
    assert scene.shown() == {1: [30, 30, 22], 2: [30, 30, 22]}
    # Without a new block there is nothing to show.
    scene.now += timedelta(seconds=2 * PERIOD)
    assert scene.build() == []


def test_data_version_is_raised_once_per_published_version(scene: Scene) -> None:
    """A failed or unpublished build shows nothing, so it needs no further data version."""
    scene.build()
    for block in (12, 13):
        scene.mark(1, block)
        assert scene.build(is_published=False) == ["a"]
    assert scene.numbers() == {"a": 2, "b": 1}
    scene.build()
    scene.mark(1, 14)
    scene.build()
    assert scene.numbers() == {"a": 3, "b": 1}


def test_configuration_change_raises_the_tenants_data_version(scene: Scene) -> None:
    scene.build()
    scene.connection.execute("update raw.control_tenants set revision = 2 where tenant_id = 'b'")
    assert scene.build() == ["b"]
    assert scene.build() == []


def test_gap_filled_without_rows_raises_the_data_version(scene: Scene) -> None:
    """Only the coverage changes; no row is marked."""
    scene.connection.execute("update raw.coverage set to_block = 15 where address = '0x2'")
    scene.build()
    assert scene.shown() == {1: [20, 20, 12], 2: [15, 20, 12]}
    scene.collect(30)
    assert is_any_due(scene.connection, PERIOD, scene.now)
    assert scene.build() == ["b"]
    assert scene.shown() == {1: [20, 20, 12], 2: [30, 30, 22]}


def test_start_and_end_of_a_collection_failure_raise_the_data_version(scene: Scene) -> None:
    scene.connection.execute("update raw.coverage set to_block = 15 where address = '0x2'")
    scene.build()
    failed = "insert into raw.collection_failures values (?, 'n', 'eth_getLogs', ?, 20, 'no answer', '2026-01-01')"
    scene.connection.execute(failed, [scene.batch, 16])
    assert scene.build() == ["b"]
    scene.connection.execute(failed, [scene.batch, 16])
    assert scene.build() == []
    assert scene.build() == ["b"]


def test_newest_data_version_and_those_of_the_last_day_are_kept(scene: Scene) -> None:
    scene.build()
    scene.mark(1, 12)
    scene.build()
    scene.now += timedelta(days=2)
    scene.mark(1, 12)
    scene.build()
    kept = scene.connection.execute("select tenant_id, data_version from raw.tenant_versions order by all").fetchall()
    assert kept == [("a", 3), ("b", 1)]
    scene.connection.execute("delete from raw.control_tenants where tenant_id = 'b'")
    scene.build()
    assert scene.numbers() == {"a": 3}
    assert scene.connection.execute("select distinct tenant_id from raw.tenant_horizons").fetchall() == [("a",)]


def test_number_raised_while_the_clock_was_ahead_does_not_stop_as_of(scene: Scene) -> None:
    scene.build()
    for block, days in ((30, 1826), (40, -1826)):
        scene.collect(block)
        scene.now += timedelta(days=days)
        assert scene.build() == ["a", "b"]
    assert scene.shown()[1] == [40, 40, 32]
    # Then once in a period again.
    scene.collect(50)
    assert scene.build() == []
    scene.now += timedelta(seconds=PERIOD)
    assert scene.build() == ["a", "b"]
