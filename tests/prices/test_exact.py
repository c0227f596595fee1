"""Conversion of texts to exact prices, compared digit by digit."""

from decimal import Decimal, localcontext

import pytest

from pipelines.extract.prices.exact import exact_price


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("1", "1"),
        ("1.50", "1.5"),
        ("0100", "100"),
        ("1e3", "1000"),
        ("1.25E-3", "0.00125"),
        (".5", "0.5"),
        ("5.", "5"),
        ("+7", "7"),
        ("0.000000000000000001", "0.000000000000000001"),
        ("99999999999999999999.999999999999999999", "99999999999999999999.999999999999999999"),
        ("1.0000000000000000000000", "1"),
    ],
)
def test_a_price_keeps_all_written_digits(text: str, digits: str) -> None:
    with localcontext(prec=5):  # the context must not matter
        price = exact_price(text)
    assert format(price, "f") == digits
    assert price.as_tuple().exponent <= 0  # type: ignore[operator]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("0", "not positive"),
        ("-0.1", "not positive"),
        ("0e5", "not positive"),
        ("1e-19", "more than 18 decimals"),
        ("1.0000000000000000001", "more than 18 decimals"),
        ("100000000000000000000", "more than 20 digits"),
        ("1e20", "more than 20 digits"),
        ("1e9999", "more than 20 digits"),
        ("1e99999", "not a number"),
        ("1" * 121, "not a number"),
        ("NaN", "not a number"),
        ("Infinity", "not a number"),
        ("1,5", "not a number"),
        (" 1", "not a number"),
        ("1\n", "not a number"),
        ("\u0661", "not a number"),
        ("", "not a number"),
        (None, "not a number"),
        (1, "not a number"),
        (1.5, "not a number"),
        (Decimal(1), "not a number"),
    ],
)
def test_an_inexact_price_is_refused(value: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        exact_price(value)
