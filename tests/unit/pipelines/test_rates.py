"""The speed of a history request, as stored and as shown by the API."""

import re
from decimal import Decimal

import pytest

from api.schema import Decimal as ShownDecimal
from pipelines.history.requests import write_rate


@pytest.mark.parametrize(
    ("blocks", "seconds", "text"),
    [(3610, 10.0, "361"), (25, 10.0, "2.5"), (1, 300.0, "0.00333"), (123_456, 1.0, "123000"), (1, 1e9, "0.000000001")],
)
def test_rates_are_canonical_and_never_zero(blocks: int, seconds: float, text: str) -> None:
    assert write_rate(Decimal(blocks) / Decimal(seconds)) == text
    (described,) = ShownDecimal.__metadata__
    assert re.fullmatch(described.pattern, text)
