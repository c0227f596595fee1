"""Form bodies are checked as strictly as JSON, although all values are text."""

from typing import Any, Literal

import pytest

from api.errors import ApiError
from api.http.bodies import read_form
from api.schema import Schema


class Wanted(Schema, frozen=True, kw_only=True):
    """Form with a field of each kind."""

    token: str
    data_version: int | None = None
    sort: Literal["rank", "-rank"] | None = None
    q: str | None = None


@pytest.mark.parametrize(
    ("content", "read"),
    [
        (b"token=a.b-c_d", Wanted(token="a.b-c_d")),
        (b"token=x&dataVersion=12&sort=-rank", Wanted(token="x", data_version=12, sort="-rank")),
        (b"q=%C3%BC+%26%3D&token=5", Wanted(token="5", q="\u00fc &=")),
        (b"token=x&q=null&sort=&dataVersion=", Wanted(token="x", q="null")),
        (b"token=x&q=12", Wanted(token="x", q="12")),
    ],
)
def test_forms_are_read(content: bytes, read: Wanted) -> None:
    assert read_form(content, Wanted) == read


@pytest.mark.parametrize(
    ("content", "status", "code", "pointers"),
    [
        (b"", 422, "invalid-body", ["/token"]),
        (b"token=", 422, "invalid-body", ["/token"]),
        (b"token=x&dataVersion=null", 422, "invalid-body", ["/dataVersion"]),
        (b"token=x&dataVersion=1e3", 422, "invalid-body", ["/dataVersion"]),
        (b"token=x&dataVersion=1.0&sort=null", 422, "invalid-body", ["/dataVersion", "/sort"]),
        (b"token=x&tenant=y", 400, "unknown-field", ["/tenant"]),
        (b"token=x&tenant=", 400, "unknown-field", ["/tenant"]),
        (b"token=x&token=y", 400, "repeated-field", []),
        (b"token=x" + b"&a" * 50, 400, "too-many-fields", []),
        (b"token=x&q=a&q=", 400, "repeated-field", []),
        (b"token=%FF", 400, "malformed-form", []),
        ("token=\u00fc".encode(), 400, "malformed-form", []),
    ],
)
def test_faults_of_forms_are_named(content: bytes, status: int, code: str, pointers: list[Any]) -> None:
    with pytest.raises(ApiError) as caught:
        read_form(content, Wanted)
    assert (caught.value.status, caught.value.code) == (status, code)
    assert [error.pointer for error in caught.value.errors] == pointers
