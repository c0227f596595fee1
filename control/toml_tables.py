"""Reading TOML tables field by field: each is taken once, in its form, and what is left over is refused.

Which fields a table has is said where they are taken; this knows the forms alone.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

_MISSING = object()

Value = TypeVar("Value")


def read_toml(path: Path, variable: str, problem: type[Exception]) -> "Table":
    """Read a TOML file as a table.

    Args:
        path: the file.
        variable: the environment variable that names another file, for the error.
        problem: the error to raise, of this and of every field.

    Raises:
        problem: the file cannot be read or is not TOML.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise problem(f"{path}: cannot be read ({error.strerror}); set {variable} to a file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise problem(f"{path}: is not TOML: {error}") from error
    return Table(document, f"{path}", problem)


class Table:
    """One TOML table being read: hands out each field once and refuses what is left over.

    Args:
        values: the table.
        place: where it stands, for errors: file, table and what it is about.
        problem: the error to raise.
    """

    def __init__(self, values: Mapping[str, Any], place: str, problem: type[Exception]) -> None:
        self._values = dict(values)
        self._problem = problem
        self.place = place

    def within(self, values: Mapping[str, Any], place: str) -> "Table":
        """Return a table inside this one; `place` says where in it."""
        return Table(values, f"{self.place}: {place}", self._problem)

    def error(self, field_name: str, problem: str) -> Exception:
        """Return the error of a field, which names this table, the field and what to do."""
        return self._problem(f"{self.place}: field {field_name!r}: {problem}")

    def take(self, field_name: str, read: Callable[[Any], Value], default: Any = _MISSING) -> Value:
        """Return a field in the form of `read`, which raises ValueError for another.

        Raises:
            The error given at construction: another form, or the field is not there and has no default.
        """
        value = self._values.pop(field_name, _MISSING)
        if value is _MISSING:
            if default is _MISSING:
                raise self.error(field_name, "is missing; add it")
            taken: Value = default
            return taken
        try:
            return read(value)
        except ValueError as error:
            raise self.error(field_name, str(error)) from error

    def names(self) -> list[str]:
        """Return the names of the fields that nobody took yet."""
        return list(self._values)

    def finish(self) -> None:
        """Refuse the fields that nobody took."""
        for field_name in self._values:
            raise self.error(field_name, "is unknown; remove it or correct its spelling")


def table(value: Any) -> Mapping[str, Any]:
    """Return a table."""
    if not isinstance(value, dict):
        raise ValueError("is not a table")
    return value


def tables(value: Any) -> list[dict[str, Any]]:
    """Return an array of tables."""
    if not (isinstance(value, list) and all(isinstance(item, dict) for item in value)):
        raise ValueError("is not an array of tables; write it with double brackets")
    return value


def strings(value: Any) -> list[str]:
    """Return an array of strings."""
    if not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        raise ValueError("is not an array of strings")
    return value


def string(value: Any) -> str:
    """Return a string."""
    if not isinstance(value, str):
        raise ValueError(f"is {value!r}; write a string")
    return value


def label(value: Any) -> str:
    """Return a name for people."""
    text = string(value)
    if not (0 < len(text) <= 100 and text.isprintable() and text == text.strip()):
        raise ValueError(f"is {text!r}; write 1 to 100 printable characters")
    return text


def boolean(value: Any) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"is {value!r}; write true or false")
    return value


def is_http_url(url: str) -> bool:
    """Say whether a text is an address of http or https, with a host and without blanks or open `${...}`."""
    if any(character.isspace() for character in url) or "${" in url:
        return False
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises on a malformed port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def number(lowest: float, highest: float) -> Callable[[Any], float]:
    """Return a reader of numbers within bounds, both included; for paces and waits, never for prices."""

    def read(value: Any) -> float:
        if type(value) in (int, float) and lowest <= value <= highest:
            return float(value)
        raise ValueError(f"is {value!r}; write a number from {lowest:g} to {highest:g}")

    return read


def integer(lowest: int, highest: int) -> Callable[[Any], int]:
    """Return a reader of whole numbers within bounds, both included."""

    def read(value: Any) -> int:
        if type(value) is int and lowest <= value <= highest:  # a bool is an int too, but no number here
            return value
        raise ValueError(f"is {value!r}; write a whole number from {lowest} to {highest}")

    return read


def matching(pattern: re.Pattern[str], meaning: str) -> Callable[[Any], str]:
    """Return a reader of texts of a pattern; `meaning` says it in words."""

    def read(value: Any) -> str:
        text = string(value)
        if pattern.fullmatch(text) is None:
            raise ValueError(f"is {text!r}; write {meaning}")
        return text

    return read


def one_of(names: tuple[str, ...]) -> Callable[[Any], str]:
    """Return a reader of one of some names."""

    def read(value: Any) -> str:
        text = string(value)
        if text not in names:
            raise ValueError(f"is {text!r}; write one of {', '.join(names)}")
        return text

    return read
