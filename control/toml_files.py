"""Configuration files: TOML read into typed structs, once per content; errors name file, table and field.

Which fields a table has, and within which bounds, its struct says.
"""

import re
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

import msgspec

File = TypeVar("File", bound="Table")

Label = Annotated[str, msgspec.Meta(max_length=100, pattern=r"^[^\x00-\x20\x7f]([^\x00-\x1f\x7f]*[^\x00-\x20\x7f])?$")]
"""A name for people: printable, without blanks at its ends."""
Name = Annotated[str, msgspec.Meta(pattern="^[a-z0-9][a-z0-9-]{0,62}$")]
"""A name for addresses and commands: lower-case letters, digits and hyphens."""

_MISSING = re.compile("Object missing required field `(.+)`")
_UNKNOWN = re.compile("Object contains unknown field `(.+)`")
_OTHER_WORD = re.compile(r"Expected `str` matching regex '\^\((.+)\)\$'")
_OUT_OF_BOUNDS = re.compile("(Expected .*(?:regex|length|>=|<=) .*)")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of such a file.

    Where fields must fit each other, its `__post_init__` raises ValueError with what is to be done.
    """


def read_toml(path: Path, variable: str, form: type[File], problem: type[Exception]) -> File:
    """Read a TOML file.

    Args:
        path: the file.
        variable: the environment variable that names another file, for the error.
        form: type of the whole file.
        problem: the error to raise.

    Raises:
        problem: the file cannot be read, is not TOML, or is not of the form.
    """
    try:
        file: File = _decode(path.read_text(encoding="utf-8"), form)
    except OSError as error:
        raise problem(f"{path}: cannot be read ({error.strerror}); set {variable} to a file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise problem(f"{path}: is not TOML: {error}") from error
    except _WrongForm as error:
        raise problem(f"{path}: {error}") from None
    return file


class _WrongForm(Exception):
    """TOML that is not of the form; the message names table, field and fix."""


@lru_cache(maxsize=8)
def _decode(text: str, form: type[File]) -> File:
    document = tomllib.loads(text)
    try:
        return msgspec.convert(document, form)
    except msgspec.ValidationError as error:
        raise _WrongForm(_place_and_fix(str(error), document)) from None


def _place_and_fix(error: str, document: Any) -> str:
    """The error in words of the file: tables by their names in place of their numbers."""
    text, _, steps = error.partition(" - at `$")
    places: list[str] = []
    value, key = document, ""
    for name, number in _STEP.findall(steps):
        if name:
            key, value = name, value.get(name)
            places.append(f"field {name!r}")
        else:
            value = value[int(number)]
            if isinstance(value, dict):
                called = value.get("name", value.get("symbol", f"number {int(number) + 1}"))
                places[-1] = f"{key} {called!r}"
    if found := _MISSING.fullmatch(text):
        places.append(f"field {found[1]!r}")
        text = "is missing; add it"
    elif found := _UNKNOWN.fullmatch(text):
        places.append(f"field {found[1]!r}")
        text = "is unknown; remove it or correct its spelling"
    elif found := _OTHER_WORD.fullmatch(text):
        text = f"is {value!r}; write one of {found[1].replace('|', ', ')}"
    elif found := _OUT_OF_BOUNDS.fullmatch(text):
        text = f"is {value!r}; {text}"
    return ": ".join([*places, text.replace("`object`", "`table`")])


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


def is_public_url(url: str) -> bool:
    """Say whether a text is an address of https that links may begin with: no user, no query, no fragment."""
    if not is_http_url(url) or not url.isascii() or not url.isprintable() or any(mark in url for mark in "\\\"'<>@?#"):
        return False
    return urlsplit(url).scheme == "https"


def one_of(words: tuple[str, ...]) -> msgspec.Meta:
    """The bounds of a text that is one of some words."""
    return msgspec.Meta(pattern=f"^({'|'.join(words)})$")


def within(lowest: float, highest: float) -> msgspec.Meta:
    """The bounds of a number, both included."""
    return msgspec.Meta(ge=lowest, le=highest)
