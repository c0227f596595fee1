"""Query parameters shared by the rows of all reports."""

from typing import Annotated

from litestar.params import QueryParameter

from control.inputs import FILTER

RowLimit = Annotated[int, QueryParameter(ge=1, le=200, description="Largest number of rows in a page.")]
RowOffset = Annotated[int, QueryParameter(ge=0, le=2**62, description="Number of rows to skip.")]
PinnedVersion = Annotated[
    int | None,
    QueryParameter(
        name="dataVersion",
        ge=0,
        le=2**62,
        description="`dataVersion` of the answer with the head of the report; the rows then come from the same data.",
    ),
]
RowSearch = Annotated[
    str | None,
    QueryParameter(
        description="Part of an address or of your name for it, in upper or lower case.", schema_extra=FILTER
    ),
]
