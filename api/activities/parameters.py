"""Parameters of activities, and parsing of exact amounts."""

import re
from typing import Annotated, Literal

from litestar.params import QueryParameter

from api.activities.schemas import Direction, TokenActivityType, WalletActivityType
from api.errors import invalid_parameter, malformed_parameters
from api.examples import EXAMPLE_ACTIVITY_ID
from api.http.parameters import in_path
from api.schema import ActivityStatus, FieldError
from control.inputs import (
    ACTIVITY_ID,
    ADDRESS,
    ASSET_OR_TOKEN,
)

_AMOUNT = re.compile(r"([0-9]{1,100})(?:\.([0-9]{1,100}))?")


DateSort = Annotated[Literal["date", "-date"], QueryParameter(description="Sort order; `-date` is newest first.")]


TokenActivityTypeFilter = Annotated[
    TokenActivityType | None, QueryParameter(name="type", description="Kind of activity.")
]


WalletActivityTypeFilter = Annotated[
    WalletActivityType | None, QueryParameter(name="type", description="Kind of activity.")
]


ActivityStatusFilter = Annotated[ActivityStatus | None, QueryParameter(description="Finality of the activity.")]


WalletFilter = Annotated[
    str | None,
    QueryParameter(
        description="Address of the sender or the receiver, in any form that the network accepts.", schema_extra=ADDRESS
    ),
]


MinimumAmount = Annotated[
    str | None,
    QueryParameter(
        name="minAmount",
        description="Smallest amount, a decimal in whole tokens, compared exactly.",
        schema_extra={"pattern": f"^(?:{_AMOUNT.pattern})$"},
    ),
]


DirectionFilter = Annotated[Direction | None, QueryParameter(description="Direction: into the wallet or out of it.")]


TokenFilter = Annotated[
    str | None,
    QueryParameter(
        description="Asset: the address of its contract, `native`, or the id of your token.",
        schema_extra=ASSET_OR_TOKEN,
    ),
]


CounterpartyFilter = Annotated[
    str | None,
    QueryParameter(
        description="Address of the counterparty, or of one among several in `counterparties`, in any form that the "
        "network accepts.",
        schema_extra=ADDRESS,
    ),
]


ActivityId = Annotated[str, in_path("activityId", "Id of the activity, `act_...`.", EXAMPLE_ACTIVITY_ID, ACTIVITY_ID)]


def scale_amount(parameter: str, text: str, decimals: int) -> int:
    """Convert a decimal amount of whole tokens to base units, rounded up.

    Args:
        parameter: name of the parameter, for the error.
        text: decimal, such as '1.5'.
        decimals: decimals of the token; 0 if they are unknown, since its quantities are then in base units.

    Raises:
        ApiError: 400, the text is malformed; 422, the amount is negative.
    """
    found = _AMOUNT.fullmatch(text)
    if found is None:
        if _AMOUNT.fullmatch(text.removeprefix("-")):
            raise invalid_parameter(parameter, "negative", f"{parameter} is negative; write a decimal such as 1.5")
        detail = f"{parameter} must be a decimal such as 1.5, without exponent"
        raise malformed_parameters([FieldError(parameter=parameter, code="malformed", detail=detail)])
    fraction = found[2] or ""
    kept, rest = fraction[:decimals], fraction[decimals:]
    return int(found[1] + kept.ljust(decimals, "0")) + bool(rest.strip("0"))
