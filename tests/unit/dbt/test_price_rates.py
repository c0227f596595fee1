"""Inverse and cross rates of the marts file, compared with exact fractions."""

from fractions import Fraction
from itertools import product

import duckdb
import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

# Prices as integers of 10^-18; the fast path of a quotient ends at denominators of 10^29 and quotients of 10^37.
EDGES = [1, 2, 3, 7, 10**9, 10**18 - 1, 10**18, 10**18 + 1, 3 * 10**18, 10**23, 10**28, 10**29 - 1, 10**29, 10**37]
EDGES += [2 * 10**18, 2**64, 2**96 + 1, 10**37 + 1, 10**38 - 1]
Rate = tuple[int, bool, int, bool]


def text(units: int) -> str:
    """Return an integer of 10^-18 as canonical decimal text."""
    whole, rest = divmod(units, 10**18)
    return f"{whole}.{rest:018d}".rstrip("0").rstrip(".")


def expected(rate: Rate) -> str:
    """Return the rate by its definition: exact, then rounded half to even."""
    first, first_is_inverted, second, second_is_inverted = rate
    parts = [(Fraction(first, 10**18), first_is_inverted), (Fraction(second, 10**18), second_is_inverted)]
    value = Fraction(1)
    for price, is_inverted in parts:
        value = value / price if is_inverted else value * price
    return text(round(value * 10**18))


def assert_rates(marts: duckdb.DuckDBPyConnection, rates: list[Rate]) -> None:
    table = pa.table(
        {
            "n": range(len(rates)),
            "a": [text(rate[0]) for rate in rates],
            "b": [rate[1] for rate in rates],
            "c": [text(rate[2]) for rate in rates],
            "d": [rate[3] for rate in rates],
        }
    )
    marts.register("operands", table)
    query = "select marts.to_rate(a::decimal(38, 18), b, c::decimal(38, 18), d) from operands order by n"
    answers = [answer for (answer,) in marts.execute(query).fetchall()]
    marts.unregister("operands")
    assert answers == [expected(rate) for rate in rates]


def test_rates_of_edges(marts: duckdb.DuckDBPyConnection) -> None:
    flags = [False, True]
    assert_rates(marts, list(product(EDGES, flags, EDGES, flags)))


def test_rates_round_half_to_even(marts: duckdb.DuckDBPyConnection) -> None:
    # Odd multiples of half of 10^-18, made by a product and by a quotient.
    halves = [(odd * 10**9, False, 5 * 10**8, False) for odd in range(1, 40, 2)]
    quotients = [(odd, False, 2 * 10**18, True) for odd in range(1, 40, 2)]
    assert_rates(marts, halves + quotients)
    assert expected(halves[0]) == "0"
    assert expected(halves[1]) == text(2)


prices = st.integers(1, 38).flatmap(lambda digits: st.integers(1, 10**digits - 1))


@settings(
    max_examples=5,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
@given(rates=st.lists(st.tuples(prices, st.booleans(), prices, st.booleans()), min_size=200, max_size=400))
def test_rates_of_any_prices(marts: duckdb.DuckDBPyConnection, rates: list[Rate]) -> None:
    assert_rates(marts, rates)
