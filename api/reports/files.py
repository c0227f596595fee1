"""Rows of a report as a file that a browser saves."""

import re
from typing import TypeVar

import msgspec
from litestar.response import Stream

from api.http import formats
from api.http.calls import NO_STORE, Fetch, read_batches
from api.http.file_context import FileContext
from api.reports.calls import EmbedCall
from api.schema import AsOf, Coverage, Schema

Item = TypeVar("Item", bound=Schema)

_FILE_NAMES = {"cap-table": "cap-table", "cap-table-changes": "changes", "wallet-activity": "activity"}
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class _Head(Schema, frozen=True, kw_only=True):
    """The facts in the headers of a report's file."""

    as_of: AsOf
    coverage: Coverage


def stream_report(
    call: EmbedCall,
    version: int,
    row_type: type[Item],
    rows: Fetch[Item],
    subject: str,
    as_of: AsOf,
    coverage: Coverage,
    *,
    has_all_rows: bool = True,
    reads_columns: bool = False,
) -> Stream:
    """Return a response that streams all rows of a report as a CSV file.

    Args:
        call: the request.
        version: the published version of the rows.
        row_type: struct of every row.
        rows: reads a batch of rows.
        subject: name of the token or wallet, for the file name.
        as_of: the moment of the rows.
        coverage: coverage of the rows' range.
        has_all_rows: whether complete coverage means that no row is missing; False while holders are unknown.
        reads_columns: whether `rows` returns columns.
    """
    block = "empty" if as_of.block_number is None else str(as_of.block_number)
    name = f"{_UNSAFE.sub('-', subject)[:64].strip('-.') or 'report'}-{_FILE_NAMES[call.report]}-{block}.csv"
    count = call.services.batch_size(reads_columns=reads_columns)
    batches = read_batches(call.serving, version, rows, count)
    shown = coverage if has_all_rows else msgspec.structs.replace(coverage, complete=False)
    context = FileContext(_Head(as_of=as_of, coverage=shown)).headers()
    return formats.stream_file(row_type, batches, {**NO_STORE, **formats.attachment(name), **context})
