"""What the record of builds says to the next build."""

from pipelines.load.state import begin_build, record_transform
from tests.unit.load.pricing import raw_warehouse


def test_only_the_project_that_built_the_marts_keeps_what_they_hold() -> None:
    with raw_warehouse() as raw:
        raw.query("insert into raw.control_revisions values (1)")
        assert not begin_build(raw.connection, "first")
        record_transform(raw.connection, 1, "first")
        assert begin_build(raw.connection, "first")
        assert begin_build(raw.connection, "first")


def test_a_build_of_another_project_that_failed_leaves_nothing_to_keep() -> None:
    with raw_warehouse() as raw:
        raw.query("insert into raw.control_revisions values (1)")
        record_transform(raw.connection, 1, "first")
        assert not begin_build(raw.connection, "second")
        assert not begin_build(raw.connection, "first")
        record_transform(raw.connection, 2, "first")
        assert begin_build(raw.connection, "first")
