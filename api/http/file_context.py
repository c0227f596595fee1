"""Context of a file: its token or wallet, its moment, and the fields that the JSON answer has beside its rows.

All of it is read from the struct of the answer, so that files say the same as JSON. `formats` writes it.
"""

import json
import re
import typing
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from api.schema import AsOf, Coverage, FileSubject, Page, Schema
from control.subjects import SubjectRow

# A header of long lists would pass the limits of proxies; the JSON answer, Parquet's metadata and CSV have all of them.
_MOST_IN_HEADER = 20
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 64


class FileContext:
    """The facts that hold for all rows of a file.

    Args:
        answer: the JSON answer; its page and its lists of structs are not read.
        subject: the token or wallet that the rows are of; None where they are of none.
    """

    def __init__(self, answer: Schema, subject: SubjectRow | None = None) -> None:
        self._subject = None if subject is None else to_file_subject(subject)
        found = {field.encode_name: getattr(answer, field.name) for field in _fields_beside_rows(type(answer))}
        self._moments = [value for value in found.values() if isinstance(value, AsOf)]
        coverage = found.get("coverage")
        if isinstance(coverage, Coverage) and not answer.has_all_rows:
            found["coverage"] = msgspec.structs.replace(coverage, complete=False)
        named = {} if self._subject is None else {"subject": self._subject}
        self._values: dict[str, Any] = msgspec.to_builtins({**named, **found})
        as_of = getattr(answer, "as_of", None)
        self._as_of = None if as_of is None else msgspec.to_builtins(as_of)

    def headers(self) -> dict[str, str]:
        """Return the response headers; lists are cut after 20 elements."""
        sent = {} if self._as_of is None else {"X-As-Of": _ascii(self._as_of)}
        if (coverage := self._values.get("coverage")) is not None:
            sent["X-Coverage"] = _ascii(_shorten(coverage))
        rest = {name: value for name, value in self._values.items() if name not in ("asOf", "coverage")}
        if rest:
            sent["X-Context"] = _ascii(_shorten(rest))
        return sent

    def metadata(self) -> dict[str, bytes]:
        """Return the metadata of a Parquet file."""
        told = {"asOf": self._as_of, "coverage": self._values.get("coverage"), "context": self._values}
        return {name: msgspec.json.encode(value) for name, value in told.items() if value is not None}

    def comment(self) -> str:
        """Return the one line that a CSV file begins with where a comment is asked for: JSON behind a `#`."""
        return f"# {msgspec.json.encode(self._values).decode('utf-8')}\r\n"

    def columns(self) -> dict[str, str | None]:
        """Return the columns that each row of a CSV file repeats where columns are asked for, by name."""
        return dict(_flat(self._values, "context."))

    def file_name(self, label: str | None, extension: str, template: str) -> str:
        """Return a name for the file, such as `GOLD-cap-table-2026-10-31.csv`; safe characters only.

        Args:
            label: begins the name of a file that is of no token or wallet.
            extension: of the form, without a dot.
            template: path of the route, with the names of its parameters in braces.
        """
        labels = [label]
        if self._subject is not None:
            labels = [self._subject.symbol, self._subject.name, self._subject.ledger_id]
        safe = next((found for each in labels if (found := _safe(each or ""))), "")
        parts = [safe, _noun(template), *(_date(moment.at) for moment in self._moments)]
        return f"{'-'.join(part for part in parts if part)}.{extension}"


def to_file_subject(subject: SubjectRow) -> FileSubject:
    """Return a token or wallet as files name it."""
    return FileSubject(
        kind=subject.kind.value,
        id=subject.id,
        symbol=subject.symbol,
        name=subject.name,
        ledger=subject.ledger_name,
        ledger_id=subject.presented_address,
    )


def _fields_beside_rows(answer_type: type[Schema]) -> list[msgspec.structs.FieldInfo]:
    return [field for field in msgspec.structs.fields(answer_type) if not _holds_rows(field.type)]


def _holds_rows(annotation: Any) -> bool:
    if annotation is Page:
        return True
    while typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    if typing.get_origin(annotation) is not list:
        return False
    (element,) = typing.get_args(annotation)
    return isinstance(element, type) and issubclass(element, Schema)


def _flat(values: Mapping[str, Any], prefix: str) -> typing.Iterator[tuple[str, str | None]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        elif value is None or isinstance(value, str):
            yield prefix + name, value
        else:
            yield prefix + name, msgspec.json.encode(value).decode("utf-8")


def _shorten(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shorten(inner) for name, inner in value.items()}
    return value[:_MOST_IN_HEADER] if isinstance(value, list) else value


def _ascii(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _noun(template: str) -> str:
    """Return the contents' name, from the route: its path behind the last parameter, or its last part."""
    behind = template.rpartition("}")[2].strip("/")
    return behind.replace("/", "-") if "{" in template and behind else template.rstrip("/").rpartition("/")[2]


def _date(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d}"


def _safe(text: str) -> str:
    return _UNSAFE.sub("-", text)[:_LONGEST_NAME].strip("-.")
