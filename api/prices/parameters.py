"""Parameters of prices."""

from typing import Annotated

from litestar.params import QueryParameter

from api.examples import (
    EXAMPLE_MARKET_PAIR_ID,
    EXAMPLE_SOURCE_ID,
)
from api.http.parameters import (
    in_path,
)
from api.schema import Interval
from control.inputs import (
    PAIR_ID,
    SOURCE_ID,
)

SourceId = Annotated[str, in_path("id", "Id of the price source, `src_...`.", EXAMPLE_SOURCE_ID, SOURCE_ID)]


PairId = Annotated[str, in_path("pairId", "Id of the pair, `pair_...`.", EXAMPLE_MARKET_PAIR_ID, PAIR_ID)]


PriceSourceFilter = Annotated[
    str | None,
    QueryParameter(
        name="priceSource",
        description="Id of a source of the pair, to get the prices of this source.",
        schema_extra=SOURCE_ID,
    ),
]


PriceInterval = Annotated[
    Interval | None,
    QueryParameter(description="Length of the intervals. Without it, the answer has every change of the price."),
]
