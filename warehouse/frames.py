"""Rows of a published file as a pandas frame, for notebooks and scripts: every digit is kept."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd


def read_frame(path: Path | str, query: str, parameters: Sequence[Any] = ()) -> pd.DataFrame:
    """Return the rows of a query as a frame.

    Args:
        path: a published file, such as `data/serving/current.duckdb`; it is closed again before this returns.
        query: one SELECT statement; `?` stands for a parameter.
        parameters: the values of the parameters, in their order.

    Returns:
        Columns of Arrow's types, so that decimals stay decimals and nulls stay nulls. Columns of type BIGNUM, for which
        Arrow has no type, hold Python's integers.
    """
    with duckdb.connect(str(path), read_only=True) as connection:
        rows = connection.sql(query, params=list(parameters))
        whole = [name for name, kind in zip(rows.columns, rows.types, strict=True) if kind == "BIGNUM"]
        quoted = {name: '"' + name.replace('"', '""') + '"' for name in rows.columns}
        selected = (f"{text}::varchar as {text}" if name in whole else text for name, text in quoted.items())
        table = rows.project(", ".join(selected)).to_arrow_table()
    frame = table.to_pandas(types_mapper=pd.ArrowDtype)
    for name in whole:
        integers = [None if text is None else int(text) for text in table.column(name).to_pylist()]
        frame[name] = pd.Series(integers, index=frame.index, dtype=object)
    return frame
