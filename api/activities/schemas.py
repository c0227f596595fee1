"""Activities of tokens and wallets."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from api.schema import (
    ActivityStatus,
    ActivityValueStatus,
    Address,
    AsOf,
    BaseUnits,
    Coverage,
    Decimal,
    Instant,
    Located,
    MetadataStatus,
    OwnName,
    Page,
    Schema,
    TokenReference,
    TransactionHash,
    ValueStatus,
)
from api.values.schemas import Explanation

TokenActivityType = Literal["Transfer", "Mint", "Burn", "Adjustment"]


class TokenActivity(Schema, frozen=True, kw_only=True):
    """One movement seen from the token."""

    id: str
    type: TokenActivityType
    date: Annotated[Instant, Meta(description="Time of the block.")]
    status: ActivityStatus
    from_wallet: Address | None
    to_wallet: Address | None
    amount: Annotated[Decimal, Meta(description="In whole tokens, or base units when decimals are unknown.")]
    amount_raw: BaseUnits
    value: Decimal | None
    value_status: ActivityValueStatus
    price: Decimal | None
    price_status: ValueStatus
    transaction_hash: Annotated[TransactionHash | None, Meta(description="Null for adjustments.")]
    log_index: Annotated[int | None, Meta(description="Position in the block; null for adjustments.")]
    located: Located
    block_number: int
    from_name: OwnName
    to_name: OwnName
    explanation: Annotated[Explanation, Meta(description="Only with `explain=true`.")] | UnsetType = UNSET


class TokenActivities(Schema, frozen=True, kw_only=True):
    """A page of a token's activities."""

    data: list[TokenActivity]
    page: Page
    metadata_status: MetadataStatus | None
    currency: Annotated[str, Meta(description="Currency of values.")]
    as_of: AsOf
    coverage: Coverage


WalletActivityType = Literal["TransferIn", "TransferOut", "Self", "Mint", "Burn", "Fee", "Internal", "Adjustment"]


WalletActivityStatus = Literal["Confirmed", "Finalized", "Failed"]


Direction = Literal["In", "Out"]


AmountStatus = Annotated[
    Literal["Known", "UnknownFee"],
    Meta(
        description="`UnknownFee`: the amount is null, because block and receipt do not state the whole fee. The next "
        "reading of the balance shows it as `Internal`."
    ),
]


AssetMetadataStatus = Annotated[
    MetadataStatus | None, Meta(description="Null for the native asset, and until the contract was read.")
]


class WalletActivity(Schema, frozen=True, kw_only=True):
    """One movement seen from the wallet."""

    id: str
    type: WalletActivityType
    direction: Annotated[Direction | None, Meta(description="Null if the wallet sent to itself.")]
    date: Annotated[Instant, Meta(description="Time of the block.")]
    status: WalletActivityStatus
    counterparty: Address | None
    token: TokenReference
    amount: Annotated[
        Decimal | None,
        Meta(description="In whole tokens, or base units when decimals are unknown; null when the amount is unknown."),
    ]
    amount_raw: BaseUnits | None
    amount_status: AmountStatus
    value: Decimal | None
    value_status: ActivityValueStatus
    price: Decimal | None
    price_status: ValueStatus
    transaction_hash: Annotated[
        TransactionHash | None, Meta(description="Null for changes without a known transaction.")
    ]
    trace_index: Annotated[
        int | None,
        Meta(
            description="Position of an internal transfer among its transaction's traces; null for all other "
            "activities."
        ),
    ]
    located: Located
    block_number: int
    counterparty_name: OwnName
    metadata_status: AssetMetadataStatus
    explanation: Annotated[Explanation, Meta(description="Only with `explain=true`.")] | UnsetType = UNSET


class WalletActivities(Schema, frozen=True, kw_only=True):
    """A page of a wallet's activities."""

    data: list[WalletActivity]
    page: Page
    currency: Annotated[str, Meta(description="Currency of values.")]
    as_of: AsOf
    coverage: Coverage
