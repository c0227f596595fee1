"""The record of builds, as used by the next build."""

import pytest

from pipelines.raw.builds import (
    begin_build,
    build_identity,
    has_values_to_build,
    has_wallets_to_build,
    record_transform,
)
from tests.unit.pipelines.pricing import raw_warehouse


def test_marts_are_reused_only_by_the_project_that_built_them() -> None:
    with raw_warehouse() as raw:
        raw.query("insert into raw.control_revisions values (1)")
        assert not begin_build(raw.connection, "first", "m0", "m1")
        record_transform(raw.connection, 1, build_identity("first", "m1"))
        assert begin_build(raw.connection, "first", "m1", "m2")
        assert begin_build(raw.connection, "first", "m2", "m3")


def test_failed_build_of_another_project_prevents_reuse() -> None:
    with raw_warehouse() as raw:
        raw.query("insert into raw.control_revisions values (1)")
        record_transform(raw.connection, 1, build_identity("first", "m1"))
        assert not begin_build(raw.connection, "second", "m1", "m2")
        assert not begin_build(raw.connection, "first", "m2", "m3")
        record_transform(raw.connection, 2, build_identity("first", "m3"))
        assert begin_build(raw.connection, "first", "m3", "m4")


@pytest.mark.parametrize("found", [None, "m1", "m3"])
def test_marts_of_another_build_are_not_reused(found: str | None) -> None:
    """The build file is lost, older than the warehouse, or newer."""
    with raw_warehouse() as raw:
        raw.query("insert into raw.control_revisions values (1)")
        record_transform(raw.connection, 1, build_identity("first", "m1"))
        assert begin_build(raw.connection, "first", "m1", "m2")
        assert not begin_build(raw.connection, "first", found, "m4")
        # This holds until a build is complete.
        assert not begin_build(raw.connection, "first", "m4", "m5")


def test_wallets_are_built_while_any_exists_and_once_afterwards() -> None:
    with raw_warehouse() as raw:

        def is_due() -> tuple[bool, bool]:
            return has_wallets_to_build(raw.connection), has_values_to_build(raw.connection)

        raw.query("insert into raw.control_revisions values (1)")
        raw.query(
            """
            insert into raw.control_subjects by name
            select
                1 as subject_key, 'tok_1' as subject_id, 'token' as kind, 'ten_a' as tenant_id, 'led_a' as ledger_id,
                'local' as network, '0xa' as address, timestamp '2026-05-01' as created_at
            """
        )
        assert is_due() == (True, True)
        record_transform(raw.connection, 1, "project")
        assert is_due() == (False, False)
        raw.query("update raw.control_subjects set kind = 'wallet'")
        raw.query("update raw.control_revisions set revision = 2")
        assert is_due() == (True, True)
        record_transform(raw.connection, 2, "project")
        assert is_due() == (True, True)
        raw.query("delete from raw.control_subjects")
        raw.query("update raw.control_revisions set revision = 3")
        assert is_due() == (True, True)
        record_transform(raw.connection, 3, "project")
        assert is_due() == (False, False)
        raw.query("insert into raw.price_changes (pair_key, batch_id) values (1, 4)")
        assert is_due() == (False, True)
