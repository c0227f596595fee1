"""CSV, NDJSON and Parquet of structs and of columns: the same file, as Python's own writers make it."""

import asyncio
import csv
import io
from collections.abc import Generator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from api.http import media_types
from api.http.formats import Batch, stream_rows
from api.schema import Schema
from warehouse.spreadsheets import guard_cell


class Line(Schema, frozen=True, kw_only=True):
    """A row with a column of each kind."""

    rank: int
    own_name: str | None
    status: Literal["Known", "Unknown"]
    block_number: int | None
    block_time: datetime | None
    is_complete: bool | None


special = st.text(st.sampled_from("=+-@\t\r\n＝＋－＠'\",\\ 1.5\x00\x1f\x7fä\u2028"), max_size=6)  # noqa: RUF001
times = st.integers(0, 2**53 - 1).map(
    lambda microseconds: datetime.fromtimestamp(0, UTC) + timedelta(0, 0, microseconds)
)
lines = st.builds(
    Line,
    rank=st.integers(-(2**63), 2**63 - 1),
    own_name=st.none() | special | st.text(max_size=20),
    status=st.sampled_from(["Known", "Unknown"]),
    block_number=st.none() | st.integers(0, 2**53),
    block_time=st.none() | times | times.map(lambda time: time.replace(microsecond=0)),
    is_complete=st.none() | st.booleans(),
)


def written(form: str, batches: Sequence[Batch]) -> bytes:
    async def read() -> bytes:
        def given_batches() -> Generator[Batch]:
            yield from batches

        return b"".join([chunk async for chunk in stream_rows(form, Line, given_batches(), {}).iterator])

    return asyncio.run(read())


def by_python(batches: Sequence[Sequence[Line]]) -> bytes:
    """Return the CSV file that Python's writer makes."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(["rank", "ownName", "status", "blockNumber", "blockTime", "isComplete"])
    for row in (row for batch in batches for row in batch):
        told = msgspec.to_builtins(row)
        is_complete = {None: "", True: "true", False: "false"}[row.is_complete]
        writer.writerow(
            [row.rank, guard_cell(row.own_name), row.status, row.block_number, told["blockTime"], is_complete]
        )
    return buffer.getvalue().encode()


def in_columns(batch: Sequence[Line]) -> Any:
    schema = pa.schema(
        {
            "is_complete": pa.bool_(),
            "status": pa.string(),
            "rank": pa.int64(),
            "own_name": pa.string(),
            "block_number": pa.int64(),
            "block_time": pa.timestamp("us"),
            "of_no_field": pa.string(),
        }
    )
    found = [msgspec.structs.asdict(row) | {"of_no_field": "x"} for row in batch]
    naive = [row | {"block_time": row["block_time"] and row["block_time"].replace(tzinfo=None)} for row in found]
    return pa.Table.from_pylist(naive, schema=schema)


@given(batches=st.lists(st.lists(lines, max_size=5), max_size=3))
def test_files_of_structs_and_of_columns_are_the_same(batches: list[list[Line]]) -> None:
    columns = [in_columns(batch) for batch in batches]
    assert written(media_types.CSV, batches) == written(media_types.CSV, columns) == by_python(batches)
    assert written(media_types.NDJSON, batches) == written(media_types.NDJSON, columns)
    tables = [pq.read_table(pa.BufferReader(written(media_types.PARQUET, form))) for form in (batches, columns)]
    assert tables[0].equals(tables[1], check_metadata=True)
    assert tables[0].num_rows == sum(map(len, batches))
