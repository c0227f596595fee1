"""Forms of an answer: which one a client accepts, and rows as CSV, NDJSON or Parquet, streamed.

All forms are made from the structs of the JSON, or of columns with the same names and values, which a query returns.
Which rows there are does not go here.
"""

import io
import re
import types
import typing
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, Literal, TypeAlias, Union

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from anyio import CancelScope, CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from litestar.background_tasks import BackgroundTask
from litestar.response import Stream

from api.errors import ApiError
from api.http import media_types
from api.http.file_context import FileContext
from warehouse.spreadsheets import FORMULA_STARTS, guard_cell

Batch: TypeAlias = Sequence[msgspec.Struct] | pa.Table
"""Some rows: structs, or a column for each of their fields; that of an inner field is named by all fields to it."""
Batches = Generator[Batch]

# Each reads a batch with the memory of its version, which all answers share.
_MOST_READERS = 4
_READERS = RunVar[CapacityLimiter]("file-readers")

# The framework adds the charset of every text.
_CSV_TYPE = f"{media_types.CSV}; header=present"

_QUOTED_IN_CSV = re.compile(r'[,"\r\n]')
# Patterns of Arrow: all texts that may be changed, and few others.
_CSV_UNSAFE = f"^[{re.escape(FORMULA_STARTS)}]|{_QUOTED_IN_CSV.pattern}"
_ESCAPED_IN_JSON = r'["\\\x00-\x1f]'

_ARROW_TYPES = {bool: pa.bool_(), int: pa.int64(), datetime: pa.timestamp("us", tz="UTC")}


def negotiate(accept: str | None, offered: Sequence[str]) -> str:
    """Return the offered media type that a client prefers; the first one offered when it does not mind.

    Raises:
        ApiError: 406, none of them is acceptable.
    """
    ranges = [_read_range(part) for part in (accept or "*/*").split(",") if part.strip()]
    best, best_quality = "", 0.0
    for media_type in offered:
        fitting = [(_match(pattern, media_type), quality) for pattern, quality in ranges]
        quality = max((fit for fit in fitting if fit[0] >= 0), default=(0, 0.0))[1]
        if quality > best_quality:
            best, best_quality = media_type, quality
    if not best:
        raise ApiError(406, "not-acceptable", f"this operation offers {', '.join(offered)}; send one of them in Accept")
    return best


def stream_rows(
    media_type: str,
    row_type: type[msgspec.Struct],
    batches: Batches,
    headers: dict[str, str],
    context: FileContext | None = None,
    context_form: str | None = None,
) -> Stream:
    """Answer all rows in a tabular form; nested structs become columns such as `token.symbol`.

    Args:
        media_type: one of `media_types.FILES`.
        row_type: struct of every row; null amounts stay null, amounts stay text.
        batches: rows in order, read as the client takes them.
        headers: response headers.
        context: goes into Parquet's metadata, and into CSV by `context_form`.
        context_form: where CSV has the context, `columns` or `comment`; None: nowhere.
    """
    columns = _columns(row_type)
    shown_type = media_type
    if media_type == media_types.CSV:
        content, shown_type = _csv(columns, batches, context=context, context_form=context_form), _CSV_TYPE
    elif media_type == media_types.NDJSON:
        content = _ndjson(columns, batches)
    else:
        content = _parquet(columns, batches, {} if context is None else context.metadata())
    return _stream(content, batches, shown_type, headers)


def stream_file(row_type: type[msgspec.Struct], batches: Batches, headers: dict[str, str]) -> Stream:
    """Answer all rows as a CSV file to be saved and opened in a spreadsheet; columns and cells as `stream_rows`.

    Args:
        row_type: struct of every row.
        batches: rows in order, read as the client takes them.
        headers: response headers.
    """
    return _stream(_csv(_columns(row_type), batches), batches, _CSV_TYPE, headers)


def attachment(file_name: str) -> dict[str, str]:
    """Return the header that makes a browser save the answer under a name of safe characters."""
    return {"Content-Disposition": f'attachment; filename="{file_name}"'}


def _stream(content: Generator[bytes], batches: Batches, media_type: str, headers: dict[str, str]) -> Stream:
    """Answer what is made while the client takes it; both generators are closed when it leaves, too.

    Where that were left to the garbage collector, it would do so in any thread, at any moment: in one that holds the
    very lock which giving back a version needs.
    """

    async def sent() -> AsyncGenerator[bytes]:
        try:
            while (chunk := await to_thread.run_sync(next, content, None, limiter=_readers())) is not None:
                yield chunk
        finally:
            with CancelScope(shield=True):
                await to_thread.run_sync(content.close)
                await to_thread.run_sync(batches.close)

    chunks = sent()

    async def close() -> None:
        await chunks.aclose()

    return Stream(chunks, media_type=media_type, headers=headers, background=BackgroundTask(close))


def _readers() -> CapacityLimiter:
    """Return what bounds how many files are read at once, by event loop; waiting for a client is no reading."""
    try:
        return _READERS.get()
    except LookupError:
        limiter = CapacityLimiter(_MOST_READERS)
        _READERS.set(limiter)
        return limiter


def _read_range(part: str) -> tuple[str, float]:
    pattern, *parameters = (piece.strip() for piece in part.split(";"))
    quality = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                quality = float(value)
            except ValueError:
                quality = 0.0
    return pattern.lower(), quality


def _match(pattern: str, media_type: str) -> int:
    """Say how closely a media range fits a type: 2 exactly, 1 its family, 0 anything, -1 not."""
    if pattern == media_type:
        return 2
    if pattern == media_type.partition("/")[0] + "/*":
        return 1
    return 0 if pattern == "*/*" else -1


class _Column:
    """One column: its dotted name, the path of attributes to it, its Arrow type; objects and lists are JSON text."""

    def __init__(self, name: str, path: tuple[str, ...], annotation: Any) -> None:
        self.name = name
        self.path = path
        self.kind = _ARROW_TYPES.get(annotation, pa.string())
        self.is_scalar = annotation in (str, *_ARROW_TYPES) or typing.get_origin(annotation) is Literal

    def of(self, rows: Batch) -> pa.Array:
        """Return the values of a batch, by column since a step for each cell would take half of an export's time."""
        if isinstance(rows, pa.Table):
            return rows["_".join(self.path)].cast(self.kind).combine_chunks()
        first, *further = map(attrgetter, self.path)
        values = list(map(first, rows))
        for inner in further:
            values = [None if value is None else inner(value) for value in values]
        return pa.array(values if self.is_scalar else list(map(_json_text, values)), self.kind)


def _json_text(value: Any) -> Any:
    return msgspec.json.encode(value).decode("utf-8") if isinstance(value, (dict, list)) else value


def _columns(row_type: type[msgspec.Struct], prefix: str = "", path: tuple[str, ...] = ()) -> list[_Column]:
    columns: list[_Column] = []
    for field in msgspec.structs.fields(row_type):
        if field.default is msgspec.UNSET or _is_deprecated(field.type):
            continue  # of JSON and NDJSON alone
        name, inner = prefix + field.encode_name, _without_none(field.type)
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            columns += _columns(inner, f"{name}.", (*path, field.name))
        else:
            columns.append(_Column(name, (*path, field.name), inner))
    return columns


def _is_deprecated(annotation: Any) -> bool:
    """Return whether the schema of a property says so, in one of its alternatives too."""
    if typing.get_origin(annotation) is typing.Annotated:
        annotation, *told = typing.get_args(annotation)
        if any(isinstance(one, msgspec.Meta) and (one.extra_json_schema or {}).get("deprecated") for one in told):
            return True
    return any(map(_is_deprecated, typing.get_args(annotation)))


def _without_none(annotation: Any) -> Any:
    while typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    if typing.get_origin(annotation) in (Union, types.UnionType):
        kept = [member for member in typing.get_args(annotation) if member is not type(None)]
        return _without_none(kept[0]) if len(kept) == 1 else str
    return annotation


def _csv(
    columns: Sequence[_Column],
    batches: Batches,
    context: FileContext | None = None,
    context_form: str | None = None,
) -> Generator[bytes]:
    repeated: dict[str, str] = {}
    head = ""
    if context is not None and context_form == "columns":
        repeated = {name: _quoted(guard_cell(value) or "") for name, value in context.columns().items()}
    elif context is not None and context_form == "comment":
        head = context.comment()
    names = ",".join(map(_quoted, [*(column.name for column in columns), *repeated]))
    begun = f"{head}{names}\r\n".encode()
    for batch in batches:
        cells = [_csv_cells(column, batch) for column in columns]
        yield begun + _lines([*cells, *repeated.values()], ",", "\r\n")
        begun = b""
    if begun:
        yield begun


def _csv_cells(column: _Column, batch: Batch) -> pa.Array:
    """Return the texts of cells: nothing for null; all but texts as in JSON."""
    values = column.of(batch)
    if column.kind != pa.string():
        return _json_values(column.kind, values).fill_null("")
    values = values.fill_null("")
    return _mended(values, _CSV_UNSAFE, lambda text: _quoted(guard_cell(text) or ""))


def _quoted(cell: str) -> str:
    """Return a cell as the file has it: in quotes where it would end early without them."""
    return '"' + cell.replace('"', '""') + '"' if _QUOTED_IN_CSV.search(cell) else cell


def _ndjson(columns: Sequence[_Column], batches: Batches) -> Generator[bytes]:
    encoder = msgspec.json.Encoder()
    names = [f'{"," if place else "{"}"{column.name}":' for place, column in enumerate(columns)]
    for batch in batches:
        if isinstance(batch, pa.Table):
            cells = [_json_cells(column, batch) for column in columns]
            yield _lines([part for pair in zip(names, cells, strict=True) for part in pair], "", "}\n")
        else:
            yield encoder.encode_lines(batch)


def _json_cells(column: _Column, batch: pa.Table) -> pa.Array:
    values = column.of(batch)
    if column.kind == pa.string():
        values = _mended(values, _ESCAPED_IN_JSON, lambda text: msgspec.json.encode(text).decode("utf-8")[1:-1])
    else:
        values = _json_values(column.kind, values)
    if column.kind in (pa.bool_(), pa.int64()):
        return values.fill_null("null")
    return pc.binary_join_element_wise('"', values, '"', "").fill_null("null")


def _json_values(kind: pa.DataType, values: pa.Array) -> pa.Array:
    """Return numbers, truth values and instants as JSON has them, instants without quotes."""
    if pa.types.is_timestamp(kind):
        # Without its zone, which may need a database that is not installed.
        seconds = pc.strftime(values.cast(pa.timestamp("us")), format="%Y-%m-%dT%H:%M:%S")
        return pc.replace_substring_regex(seconds, r"(\.000000)?$", "Z", max_replacements=1)
    return values.cast(pa.string())


def _mended(texts: pa.Array, pattern: str, mend: Callable[[str], str]) -> pa.Array:
    """Return texts, with those that match a pattern mended: they are few, and all others need no step of Python."""
    found = pc.match_substring_regex(texts, pattern).fill_null(False)
    if not found.true_count:
        return texts
    return pc.replace_with_mask(texts, found, pa.array(list(map(mend, texts.filter(found).to_pylist()))))


def _lines(parts: Sequence[pa.Array | str], separator: str, end: str) -> bytes:
    """Return the lines of a batch: the parts of each row, joined."""
    joined = pc.binary_join_element_wise(*parts, separator)
    lines = pc.binary_join_element_wise(joined, end, "")
    if not len(lines):
        return b""
    # Arrow stores the texts of an array one behind the other.
    _, _, content = lines.buffers()
    return bytes(content[: pc.sum(pc.binary_length(lines)).as_py()])


def _parquet(columns: Sequence[_Column], batches: Batches, metadata: dict[str, bytes]) -> Generator[bytes]:
    schema = pa.schema([pa.field(column.name, column.kind) for column in columns], metadata=metadata)
    sink = _Sink()
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        for batch in batches:
            arrays = [column.of(batch) for column in columns]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            yield sink.drain()
    yield sink.drain()


class _Sink(io.RawIOBase):
    """A file that is read away while it is written; the writer counts its position itself."""

    def __init__(self) -> None:
        super().__init__()
        self._chunks: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, chunk: Any) -> int:
        written = bytes(chunk)
        self._chunks.append(written)
        return len(written)

    def drain(self) -> bytes:
        drained = b"".join(self._chunks)
        self._chunks.clear()
        return drained
