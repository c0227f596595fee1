"""Signatures of handlers, and the operations derived from them."""

from collections.abc import Callable
from typing import Any

import pytest

from api.http.bodies import Rows
from api.http.calls import Call, Tabular, Written
from api.http.route_specs import OPERATION
from api.http.routes import get, post
from api.reports.schemas.report_data import CapTableForm
from api.schema import Page, Schema, TokenReference


class _Answer(Schema, frozen=True, kw_only=True):
    page: Page


def _list(call: Call, cursor: str | None = None) -> _Answer | Tabular[TokenReference]: ...
def _one(call: Call) -> TokenReference: ...
def _nothing(call: Call) -> None: ...
def _write(call: Call, payload: Page) -> Written[_Answer] | TokenReference: ...
def _write_many(call: Call, payload: Rows[Page]) -> Written[_Answer | TokenReference]: ...
def _save(call: Call, payload: CapTableForm) -> None: ...


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        (_list, {"answer": _Answer, "row": TokenReference, "is_paged": True}),
        (_one, {"answer": TokenReference, "row": None, "is_paged": False}),
        (_nothing, {"answer": None}),
        (_write, {"answer": _Answer, "dry_answer": TokenReference, "body": Page, "bulk_answer": None}),
        (_write_many, {"answer": _Answer, "bulk_answer": TokenReference, "body": Page, "dry_answer": None}),
        (_save, {"body": None, "form": CapTableForm}),
    ],
)
def test_operation_follows_the_signature(handler: Callable[..., Any], expected: dict[str, Any]) -> None:
    described = post("/")(handler).opt[OPERATION]
    assert {name: getattr(described, name) for name in expected} == expected


def _two(call: Call) -> _Answer | TokenReference: ...
def _three(call: Call) -> Written[_Answer] | TokenReference | Page: ...
def _any_struct(call: Call) -> Schema: ...
def _rows_of_any(call: Call) -> _Answer | Tabular[Schema]: ...
def _a_list(call: Call) -> list[TokenReference]: ...
def _without_call() -> _Answer: ...


@pytest.mark.parametrize("handler", [_two, _three, _any_struct, _rows_of_any, _a_list, _without_call])
def test_ambiguous_signature_is_refused(handler: Callable[..., Any]) -> None:
    with pytest.raises(TypeError):
        get("/")(handler)
