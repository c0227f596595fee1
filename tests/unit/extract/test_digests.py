"""Fingerprints of transfers: the same for the same rows, different for any other."""

import random

import polars as pl
import pytest

from pipelines.extract.evm.digests import digest_transfers
from pipelines.extract.evm.logs import Log, decode_transfers
from tests.chain.scripted_node import block_hash, transfer_log

ROWS = decode_transfers(
    [
        Log(**{name: log[key] for name, key in zip(Log.__struct_fields__, Log.__struct_encode_fields__, strict=True)})
        for log in (transfer_log(5 + index // 3, index, 10**index) for index in range(40))
    ],
    "testnet",
    0,
    100,
)


def test_order_and_other_columns_do_not_count() -> None:
    expected = digest_transfers(ROWS)
    assert expected.count == 40
    order = list(range(40))
    random.Random(1).shuffle(order)
    shuffled = ROWS[order].with_columns(network=pl.lit("testnet")).select(pl.all().reverse())
    assert digest_transfers(shuffled) == expected
    assert digest_transfers(pl.concat([ROWS[20:], ROWS[:20]])) == expected


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("block_hash", block_hash(5, fork=1)),
        ("log_index", 77),
        ("transaction_hash", "0x" + "9" * 64),
        ("token_address", "0x" + "9" * 40),
        ("from_address", "0x" + "9" * 40),
        ("to_address", "0x" + "9" * 40),
        ("amount_raw", "99"),
    ],
)
def test_every_part_of_a_transfer_counts(column: str, value: object) -> None:
    is_one = pl.int_range(pl.len()) == 7
    changed = ROWS.with_columns(pl.when(is_one).then(pl.lit(value)).otherwise(pl.col(column)).alias(column))
    assert digest_transfers(changed) != digest_transfers(ROWS)


def test_missing_and_repeated_rows_count() -> None:
    digests = [digest_transfers(rows) for rows in (ROWS, ROWS[:-1], ROWS[1:], pl.concat([ROWS, ROWS[:1]]), ROWS[:0])]
    assert len({digest.hash for digest in digests}) == 5
    assert digests[-1].count == 0
