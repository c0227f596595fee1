"""Bounds and patterns of the OpenAPI document against the validation rules: both judge each value alike."""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from api.errors import ApiError
from api.http.bodies import read_body
from api.http.parameters import read_moment, read_range
from control import fields
from control.errors import Invalid, Unparseable
from control.history import parse_range
from control.pricing.decimals import positive_decimal
from control.pricing.discovery import WindowSize, check_multiplier
from control.pricing.durations import read_duration
from control.pricing.manual_prices import ManualPriceCreate
from tests.api.document import DOCUMENT, check

NOW = datetime(2026, 3, 1, tzinfo=UTC)
LINES = [
    "a",
    "",
    " ",
    "a b",
    " a",
    "a ",
    "a\tb",
    "a\nb",
    "a\n",
    "\x00",
    "a\x7f",
    "\u2028",
    "\u00a0a",
    "\u91d1",
    "a\x85b",
    "a\u202eb",
    "a\u200bb",
    "a\u200db",
    "\ufeffa",
]
INSTANTS = ["2026-01-31", "2026-01-31T12:00", "2026-01-31T12:00:00.123456789+01:00", "2026-1-1", "2026-01-31 12:00"]
# The rules of the calendar, including year 0.
INSTANTS += [f"{year}-02-29" for year in ("2024", "2026", "2000", "1900", "0004", "0000")]
INSTANTS += [
    "2026-04-31",
    "2026-13-01",
    "2026-00-10",
    "2026-12-32",
    "0000-01-01",
    "2026-01-31T24:00",
    "2026-01-31T12:60",
]
MOMENTS = [*INSTANTS, "now", "soon", "", "yesterday", "last-month-end", "today", "creation", "block:", "block:7"]
MOMENTS += ["block:007", "block:-1", "Block:7", "2026-01-31\n"]
DURATIONS = ["P1D", "PT90M", "P2W", "P", "PT", "P1DT", "P1Y", "P1M", "1D", "P1DT2H3M4S", "P1W2D", "p1d", "P1.5D"]
NUMBERS = ["1", "1.5", "0", "0.0", "-1", "1e3", "1e-3", "0e5", "1.", ".5", "", "abc", "1,5", "007", 1, 0, -1, 10**20]


def is_valid(schema: dict[str, Any], value: Any) -> bool:
    try:
        check(schema, value)
    except Exception:  # noqa: BLE001 - whatever the validator raises
        return False
    return True


def is_taken(read: Callable[[], object], *refusals: type[Exception]) -> bool:
    try:
        read()
    except refusals:
        return False
    return True


def of_body(name: str, field: str) -> dict[str, Any]:
    schema: dict[str, Any] = DOCUMENT["components"]["schemas"][name]["properties"][field]
    return schema


def of_query(path: str, name: str) -> dict[str, Any]:
    (schema,) = [one["schema"] for one in DOCUMENT["paths"][path]["get"]["parameters"] if one["name"] == name]
    found: dict[str, Any] = schema
    return found


def _price(value: Any) -> str:
    written = str(value) if isinstance(value, int) else f'"{value}"'
    body = read_body(f'{{"price": {written}, "effectiveFrom": "2026-01-31"}}'.encode(), ManualPriceCreate)
    return positive_decimal("price", body.price)


@pytest.mark.parametrize(
    ("schema", "values", "read"),
    [
        (
            of_body("TokenCreate", "symbol"),
            [*LINES, "x" * fields.SYMBOL_LENGTH, "x" * (fields.SYMBOL_LENGTH + 1)],
            lambda text: fields.check_text("symbol", text, fields.SYMBOL_LENGTH),
        ),
        (
            of_body("WalletCreate", "name"),
            [*LINES, "x" * fields.NAME_LENGTH, "x" * (fields.NAME_LENGTH + 1)],
            lambda text: fields.check_text("name", text, fields.NAME_LENGTH),
        ),
        (
            of_body("LedgerPut", "description"),
            [*LINES, "\u91d1" * fields.DESCRIPTION_LENGTH, "x" * (fields.DESCRIPTION_LENGTH + 1)],
            lambda text: fields.check_text("description", text, fields.DESCRIPTION_LENGTH, is_multiline=True),
        ),
        (of_body("PairCreate", "maxAge"), DURATIONS, lambda text: read_duration("maxAge", text)),
        (of_body("HistoryRequest", "from"), MOMENTS, lambda text: parse_range(text, "now")),
        (of_body("HistoryRequest", "to"), MOMENTS, lambda text: parse_range("creation", text)),
        (of_query("/v1/tokens/{tokenId}/cap-table", "asOf"), MOMENTS, lambda text: read_moment(text, NOW)),
        (of_query("/v1/tokens/{tokenId}/activities", "from"), MOMENTS, lambda text: read_range(text, None)),
        (of_body("ManualPriceCreate", "price"), NUMBERS, _price),
    ],
)
def test_document_and_rules_accept_the_same_values(
    schema: dict[str, Any], values: list[Any], read: Callable[[Any], object]
) -> None:
    found = {value: (is_valid(schema, value), is_taken(partial(read, value), Invalid, ApiError)) for value in values}
    # `$` of the Python validator also matches before a final newline; `$` of browsers does not.
    assert [value for value, (valid, taken) in found.items() if valid != taken and not str(value).endswith("\n")] == []
    assert {taken for _, taken in found.values()} == {True, False}


def test_the_largest_multiplier() -> None:
    schema = of_body("PriceDiscoveryRequest", "multiplier")
    for number in (1_000_000, 1_000_001):
        taken = is_taken(partial(check_multiplier, WindowSize.DAY, Decimal(number)), Invalid)
        assert is_valid(schema, number) == taken == (number == 1_000_000)


def test_moment_that_matches_no_pattern_cannot_be_parsed() -> None:
    for text in MOMENTS:
        if not is_valid(of_query("/v1/tokens/{tokenId}/cap-table", "asOf"), text):
            assert not is_taken(partial(read_moment, text, NOW), Unparseable)
