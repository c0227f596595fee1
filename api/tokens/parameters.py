"""Parameters of tokens and their holders."""

from typing import Annotated, Literal

from litestar.params import QueryParameter

from api.tokens.schemas import HolderChangeKind, HolderChangeOrder
from control.inputs import (
    FILTER,
)

SymbolFilter = Annotated[str | None, QueryParameter(description="Symbol, compared exactly.", schema_extra=FILTER)]


TokenSort = Annotated[
    Literal["createdAt", "-createdAt", "name", "-name", "symbol", "-symbol"],
    QueryParameter(description="Sort order; a leading `-` means descending."),
]


HolderSort = Annotated[
    Literal["rank", "-rank", "wallet", "-wallet"], QueryParameter(description="Sort order; `rank` is largest first.")
]


HolderChangeSort = Annotated[
    HolderChangeOrder,
    QueryParameter(description="Sort order; `-difference` is the largest difference first, positive or negative."),
]


HolderChangeFilter = Annotated[HolderChangeKind | None, QueryParameter(name="change", description="Kind of change.")]
