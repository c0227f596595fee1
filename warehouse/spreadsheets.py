"""Escaping of CSV cells against formulas in spreadsheets, for every CSV file of the service.

A text that a spreadsheet would read as a formula gets an apostrophe in front. Plain numbers keep all their digits.
"""

import re

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
# The full-width forms of the same characters also begin a formula.
FORMULA_STARTS = "=+-@\t\r\n＝＋－＠"  # noqa: RUF001 - these are meant


def guard_cell(text: str | None) -> str | None:
    """Return the text of a cell; a formula gets an apostrophe in front."""
    if text and text[0] in FORMULA_STARTS and _NUMBER.fullmatch(text) is None:
        return f"'{text}"
    return text


def guarded_sql(column: str) -> str:
    """Return the same rule as a DuckDB expression for a text column."""
    starts = ", ".join(f"chr({ord(character)})" for character in FORMULA_STARTS)
    is_formula = f"left({column}, 1) in ({starts}) and not regexp_full_match({column}, '{_NUMBER.pattern}')"
    return f"case when {is_formula} then chr(39) || {column} else {column} end"
