"""Quantity times price in every marts file, compared with plain Python integers and `decimal`."""

import random
from decimal import ROUND_HALF_EVEN, Decimal, localcontext

import duckdb
import pyarrow as pa
import pytest

PRICES = [
    Decimal(text)
    for text in (
        "0",
        "0.000000000000000001",
        "0.000000000000000005",
        "0.5",
        "1",
        "1.0001",
        "2345.67",
        "2345.678901234567890123",
        "100000000000000000",
        "1000000",
        "99999999999999999999",
        "99999999999999999999.999999999999999999",
    )
]
QUANTITIES = [
    0,
    1,
    5,
    15,
    25,
    10**17,
    5 * 10**17,
    10**18,
    10**36 - 1,
    10**36,
    10**38,
    2**127,
    2**128,
    2**255,
    2**256 - 1,
]
DECIMALS = [0, 1, 6, 17, 18, 19, 36, 77, 255]


def value_of(raw: int, decimals: int, price: Decimal) -> Decimal:
    """raw / 10^decimals * price, 18 decimals, half to even."""
    with localcontext(prec=400):
        return (Decimal(raw).scaleb(-decimals) * price).quantize(Decimal(10) ** -18, rounding=ROUND_HALF_EVEN)


def text_of(value: Decimal) -> str:
    """Return canonical text: no exponent, no trailing zeros, no negative zero."""
    text = f"{value + 0:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def assert_values(marts: duckdb.DuckDBPyConnection, rows: list[tuple[int, int, Decimal]]) -> None:
    table = pa.table(
        {
            "n": range(len(rows)),
            "raw": [str(raw) for raw, _, _ in rows],
            "decimals": [decimals for _, decimals, _ in rows],
            "price": [str(price) for _, _, price in rows],
        }
    )
    marts.register("operands", table)
    answers = marts.execute(
        """
        select
            marts.to_value(raw::bignum, decimals, price::decimal(38, 18)),
            marts.to_value_units(raw::bignum, decimals, price::decimal(38, 18))::varchar
        from operands
        order by n
        """
    ).fetchall()
    marts.unregister("operands")
    with localcontext(prec=400):
        expected = [(text_of(value), str(int(value.scaleb(18)))) for value in (value_of(*row) for row in rows)]
    for row, answer, wanted in zip(rows, answers, expected, strict=True):
        assert (row, answer) == (row, wanted)


def test_edges(marts: duckdb.DuckDBPyConnection) -> None:
    with localcontext(prec=100):
        assert_values(
            marts, [(raw, decimals, price) for raw in QUANTITIES for decimals in DECIMALS for price in PRICES]
        )


def test_values_of_the_largest_supply_and_holding(marts: duckdb.DuckDBPyConnection) -> None:
    assert marts.execute(
        """
        select
            marts.to_value('2'::bignum, 0, 1),
            marts.to_value(
                '115792089237316195423570985008687907853269984665640564039457584007913129639935'::bignum,
                0,
                0.000000000000000001
            ),
            marts.to_value('1000000000000000000000000000000'::bignum, 18, 1000000)
        """
    ).fetchone() == (
        "2",
        "115792089237316195423570985008687907853269984665640564039457.584007913129639935",
        "1000000000000000000",
    )


def test_ties_go_to_the_even_digit(marts: duckdb.DuckDBPyConnection) -> None:
    # Odd multiples of half a unit of the 18th decimal, and their neighbours, in products of every length.
    half = Decimal("0.000000000000000005")
    ties = [(odd * 10**zeros, zeros + 1, half) for odd in range(1, 40, 2) for zeros in range(60)]
    assert_values(marts, ties)
    assert_values(marts, [(raw + nudge, decimals, price) for raw, decimals, price in ties for nudge in (-1, 1)])


def test_negative_quantities_mirror_positive_ones(marts: duckdb.DuckDBPyConnection) -> None:
    assert_values(
        marts, [(-raw, decimals, price) for raw in QUANTITIES[1:] for decimals in (0, 18) for price in PRICES[1:]]
    )


def test_missing_input_gives_null(marts: duckdb.DuckDBPyConnection) -> None:
    for raw, decimals, price in (("null", "18", "1"), ("'7'", "null", "1"), ("'7'", "18", "null")):
        operands = f"{raw}::bignum, {decimals}::integer, {price}::decimal(38, 18)"
        assert marts.execute(f"select marts.to_value({operands}), marts.to_value_units({operands})").fetchone() == (
            None,
            None,
        )


def test_a_quantity_that_is_too_long_is_an_error(marts: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.InvalidInputException, match="more than 90 digits"):
        marts.execute("select marts.to_value(repeat('9', 91)::bignum, 18, 1)").fetchone()


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.release)])
def test_any_values(marts: duckdb.DuckDBPyConnection, seed: int) -> None:
    chance = random.Random(seed)
    rows = []
    for _ in range(5_000 if seed == 0 else 100_000):
        raw = chance.getrandbits(chance.randint(1, 256)) // 10 ** chance.choice([0, 0, chance.randrange(40)])
        units = chance.getrandbits(chance.randint(1, 126)) // 10 ** chance.choice([0, 0, 8, 16]) or 1
        with localcontext(prec=100):
            price = Decimal(min(units * 10 ** chance.choice([0, 0, 8, 10]), 10**38 - 1)).scaleb(-18)
        rows.append((raw, chance.choice([0, 6, 8, 18, 18, 18, chance.randrange(256)]), price))
    assert_values(marts, rows)
