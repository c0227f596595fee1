"""The exact functions of every marts file, compared with plain Python integers."""

from fractions import Fraction
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.integration.dbt_runner import build_over_nothing

GOLDEN = [0, 1, 2**63, 2**64, 2**127, 2**128, 2**255, 2**256 - 1]
EDGES = [*GOLDEN, 2, 3, 10**22 - 1, 10**22, 10**23 - 1, 10**23, 10**24, 10**38, 3 * 10**27]
DECIMALS = [0, 6, 18, 77]


def amount(raw: int, decimals: int) -> str:
    """Return raw / 10^decimals as text."""
    sign, digits = "-" if raw < 0 else "", str(abs(raw)).rjust(decimals + 1, "0")
    whole, fraction = digits[: len(digits) - decimals], digits[len(digits) - decimals :].rstrip("0")
    return sign + whole + ("." + fraction if fraction else "")


def quotient(numerator: int, denominator: int, power: int) -> str | None:
    """10^power * numerator / denominator, 12 decimals, half to even."""
    if denominator == 0:
        return None
    return amount(round(Fraction(numerator * 10**power, denominator) * 10**12), 12)


def ask(marts: duckdb.DuckDBPyConnection, expression: str, rows: list[tuple[int, int]]) -> list[str | None]:
    """Evaluate an expression over a and b for all rows in one query."""
    table = pa.table({"n": range(len(rows)), "a": [str(a) for a, _ in rows], "b": [str(b) for _, b in rows]})
    marts.register("operands", table)
    answers = marts.execute(f"select {expression} from operands order by n").fetchall()
    marts.unregister("operands")
    return [row[0] for row in answers]


def assert_amounts(marts: duckdb.DuckDBPyConnection, rows: list[tuple[int, int]]) -> None:
    assert ask(marts, "marts.to_amount(a::bignum, b::integer)", rows) == [amount(*row) for row in rows]


def assert_percentages(marts: duckdb.DuckDBPyConnection, rows: list[tuple[int, int]]) -> None:
    expected = [quotient(part, whole, 2) for part, whole in rows]
    assert ask(marts, "marts.percentage(a::bignum, b::bignum)", rows) == expected
    assert ask(marts, "marts.ratio(a::bignum, b::bignum, 2)", rows) == expected


@pytest.mark.parametrize("decimals", DECIMALS)
def test_amount_of_golden_values(marts: duckdb.DuckDBPyConnection, decimals: int) -> None:
    assert_amounts(marts, [(sign * raw, decimals) for raw in GOLDEN for sign in (1, -1)])


def test_amount_is_canonical(marts: duckdb.DuckDBPyConnection) -> None:
    assert ask(
        marts,
        "marts.to_amount(a::bignum, b::integer)",
        [(0, 18), (1_500_000, 6), (100, 0), (100, 2), (-5, 3), (10**18, 18), (1, 77), (2**256 - 1, 77), (7, 90)],
    ) == [
        "0",
        "1.5",
        "100",
        "1",
        "-0.005",
        "1",
        "0." + "0" * 76 + "1",
        "1.15792089237316195423570985008687907853269984665640564039457584007913129639935",
        "0." + "0" * 89 + "7",
    ]


def test_missing_input_or_zero_divisor_gives_null(marts: duckdb.DuckDBPyConnection) -> None:
    assert (
        marts.execute(
            """
        select
            marts.to_amount(null::bignum, 18), marts.to_amount('7'::bignum, null::integer),
            marts.percentage(null::bignum, '7'::bignum), marts.percentage('7'::bignum, null::bignum),
            marts.percentage('7'::bignum, '0'::bignum), marts.ratio('7'::bignum, '0'::bignum, 0)
        """
        ).fetchone()
        == (None,) * 6
    )


def test_percentage_of_golden_values(marts: duckdb.DuckDBPyConnection) -> None:
    signs = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    assert_percentages(marts, [(a * part, b * whole) for part in EDGES for whole in EDGES for a, b in signs])


def test_percentage_rounds_half_to_even(marts: duckdb.DuckDBPyConnection) -> None:
    # Odd multiples of half a unit of the 12th decimal, with divisors of every length.
    assert_percentages(
        marts, [(odd * 10**zeros, 2 * 10 ** (14 + zeros)) for odd in range(1, 99, 2) for zeros in range(60)]
    )
    near = [
        (odd * 10**zeros + nudge, 2 * 10 ** (14 + zeros)) for odd in (1, 3) for zeros in range(60) for nudge in (-1, 1)
    ]
    assert_percentages(marts, near)


def test_rows_of_one_call_do_not_affect_each_other(marts: duckdb.DuckDBPyConnection) -> None:
    assert ask(marts, "marts.percentage(a::bignum, b::bignum)", [(1, 3), (2, 3), (3, 3), (5, 3)]) == [
        "33.333333333333",
        "66.666666666667",
        "100",
        "166.666666666667",
    ]


sizes = st.integers(1, 256).flatmap(lambda bits: st.integers(0, 2**bits - 1))
signed = st.builds(lambda value, sign: value * sign, sizes, st.sampled_from([1, -1]))
in_bulk = settings(
    max_examples=10,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)


@pytest.mark.ci
@in_bulk
@given(rows=st.lists(st.tuples(signed, st.integers(0, 90)), min_size=200, max_size=600))
def test_amount_of_any_value(marts: duckdb.DuckDBPyConnection, rows: list[tuple[int, int]]) -> None:
    assert_amounts(marts, rows)


@pytest.mark.ci
@in_bulk
@given(rows=st.lists(st.tuples(signed, signed), min_size=200, max_size=600))
def test_percentage_of_any_values(marts: duckdb.DuckDBPyConnection, rows: list[tuple[int, int]]) -> None:
    assert_percentages(marts, rows)
    shares = [(part % whole, whole) for part, whole in rows if whole > 0]
    assert_percentages(marts, shares or [(0, 1)])


def test_copy_of_the_file_has_the_functions(tmp_path: Path) -> None:
    stores = build_over_nothing(tmp_path)
    copy = tmp_path / "marts-1.duckdb"
    copy.write_bytes(stores.marts.read_bytes())
    with duckdb.connect(str(copy), read_only=True) as connection:
        assert connection.execute("select marts.to_amount('15'::bignum, 1)").fetchone() == ("1.5",)
