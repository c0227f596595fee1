"""Records of attestations."""

from datetime import UTC, datetime

from pipelines.attestations.records import Attestation, begin_period, finish_attestation
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
