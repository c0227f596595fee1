"""Copies of records of the control store as frames."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from sqlalchemy import Row, create_engine, literal, select

from pipelines.raw.frames import copied
from pipelines.tables.sources import TABLES
from tests.snapshots import record

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def test_values_are_exact_and_in_utc_and_other_columns_are_ignored() -> None:
    row = record("control_price_pairs", 1, max_jump="0.000000000000000001", created_at=NOON)
    row.search_text = "not described"
    frame = copied(TABLES["control_price_pairs"], [row])
    assert tuple(frame.columns) == tuple(TABLES["control_price_pairs"].schema())
    assert frame["max_jump"].to_list() == [Decimal("0.000000000000000001")]
    assert frame["created_at"].to_list() == [NOON.replace(tzinfo=None)]


def test_missing_column_is_named_with_its_table() -> None:
    with create_engine("sqlite://").connect() as connection:
        row: Row[tuple[int]] = connection.execute(select(literal(1).label("window_key"))).one()
    with pytest.raises(LookupError, match=r"raw\.control_windows .*subject_key"):
        copied(TABLES["control_windows"], [row])
