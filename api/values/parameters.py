"""Parameters of values."""

from typing import Annotated

from litestar.params import QueryParameter

Explain = Annotated[
    bool,
    QueryParameter(
        description="Adds an explanation to each row: the readings and activities of a quantity, the price, its "
        "source, and the sources that were passed over. Only for JSON, with at most 100 rows."
    ),
]
