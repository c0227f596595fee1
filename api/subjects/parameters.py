"""Parameters shared by tokens and wallets."""

from typing import Annotated

from litestar.params import QueryParameter

from api.examples import (
    EXAMPLE_TOKEN_ID,
    EXAMPLE_WALLET_ID,
)
from api.http.parameters import (
    in_path,
)
from api.schema import TrackingStatus
from control.inputs import (
    ADDRESS,
    FILTER,
    TOKEN_ID,
    WALLET_FILTER,
    WALLET_ID,
)

LedgerFilter = Annotated[str | None, QueryParameter(description="Name or id of a ledger.", schema_extra=FILTER)]


LedgerIdFilter = Annotated[
    str | None,
    QueryParameter(
        name="ledgerId",
        description="Address on the ledger, in any form that its network accepts.",
        schema_extra=ADDRESS,
    ),
]


WalletLedgerIdFilter = Annotated[
    str | None,
    QueryParameter(
        name="ledgerId",
        description="Address on the ledger, in any form that its network accepts. A wallet of keys is found by its "
        "descriptor or extended public key in any spelling, and by `ledgerId` of an answer.",
        schema_extra=WALLET_FILTER,
    ),
]


ExternalIdFilter = Annotated[
    str | None, QueryParameter(name="externalId", description="External id, compared exactly.", schema_extra=FILTER)
]


Search = Annotated[
    str | None,
    QueryParameter(description="Text to find anywhere in name, symbol, address or external id.", schema_extra=FILTER),
]


TokenId = Annotated[str, in_path("tokenId", "Id of the token, `tok_...`.", EXAMPLE_TOKEN_ID, TOKEN_ID)]


WalletId = Annotated[str, in_path("walletId", "Id of the wallet, `wal_...`.", EXAMPLE_WALLET_ID, WALLET_ID)]


TrackingStatusFilter = Annotated[
    TrackingStatus | None, QueryParameter(name="trackingStatus", description="State of tracking.")
]
