"""Records of attestations."""

from datetime import UTC, datetime, timedelta

import pytest

from pipelines.attestations import records
from pipelines.attestations.records import (
    Attestation,
    begin_period,
    finish_attestation,
    has_open_attestations,
    open_attestations,
    refuse_attestation,
)
from pipelines.rows import RpcUsage, UsageRecord, WorkClass
from tests.unit.pipelines.pricing import raw_warehouse


def test_block_with_an_empty_wallet_gets_a_record() -> None:
    with raw_warehouse() as raw:
        connection = raw.connection
        begin_period(connection, "local", 7, 12, "0xab", datetime(2024, 1, 1, tzinfo=UTC))
        connection.execute(
            "create schema requests; create table requests.requests__attestations (subject_key bigint, "
            "attestation_number bigint, holder_address varchar, balance_raw bignum)"
        )
        connection.execute(
            "create temp table attested_balances (token_address varchar, holder_address varchar, "
            "range_from_block bigint, balance_raw bignum, is_derived boolean, confirming_block bigint, is_read boolean)"
        )
        spending = UsageRecord(WorkClass.ATTESTATION, "balances", RpcUsage(0, 0))
        attestation = Attestation(7, 1, "wallet", "ten_a", "0xcc", 12, "0xab")
        finish_attestation(connection, "local", attestation, None, spending, 3)
        assert connection.execute(
            "select balance_count, unconfirmed_count, balances_raw::varchar, balances_digest from raw.attestations"
        ).fetchall() == [(0, 0, "0", "0")]


def test_refused_attestation_is_due_later_unless_the_clock_was_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 1, 1, 12, tzinfo=UTC).replace(tzinfo=None)
    with raw_warehouse() as raw:
        connection = raw.connection
        begin_period(connection, "local", 7, 12, "0xab", datetime(2024, 1, 1, tzinfo=UTC))
        connection.execute(
            """
            insert into raw.control_subjects by name
            select
                7 as subject_key, 'tok_1' as subject_id, 'token' as kind, 'ten_a' as tenant_id, 'led' as ledger_id,
                'local' as network, '0xcc' as address, timestamp '2026-01-01' as created_at
            """
        )

        def is_due(days: int) -> bool:
            monkeypatch.setattr(records, "stored_now", lambda: now + timedelta(days=days))
            found = open_attestations(connection, "local")
            assert has_open_attestations(connection) == bool(found)
            return bool(found)

        for refused_at, days, expected in ((0, 0, False), (0, 2, True), (1826, 1827, False), (1826, 0, True)):
            monkeypatch.setattr(records, "stored_now", lambda at=refused_at: now + timedelta(days=at))
            refuse_attestation(connection, Attestation(7, 1, "token", "ten_a", "0xcc", 12, "0xab"), "no")
            assert is_due(days) == expected
