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


WalletActivityType = Literal[
    "TransferIn", "TransferOut", "Self", "Mint", "Burn", "Coinbase", "Fee", "Internal", "Adjustment"
]


WalletActivityStatus = Literal["Confirmed", "Finalized", "Failed"]


Direction = Literal["In", "Out"]


AmountStatus = Annotated[
    Literal["Known", "UnknownFee"],
    Meta(
        description="`UnknownFee`: the amount is null, because block and receipt do not state the whole fee. The next "
        "reading of the balance shows it as `Internal`."
    ),
]


FeeStatus = Annotated[
    Literal["Separate", "Paid", "Shared", "NotPaid", "NotRead"],
    Meta(
        description="`Separate`: the fee is an activity of its own. `Paid`: the wallet paid `fee` on top of the "
        "amount. `Shared`: several senders paid the fee, so the amount contains the wallet's part. `NotPaid`: others "
        "paid it. `NotRead`: an input of the transaction is unknown."
    ),
]


CounterpartyStatus = Annotated[
    Literal["Known", "Several", "None", "NotRead"],
    Meta(
        description="`Known`: `counterparty` is the only one. `Several`: there is more than one. `None`: there is no "
        "other side, or it has no address. `NotRead`: an input of the transaction is unknown."
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
    counterparty: Annotated[
        Address | None, Meta(description="The other party; null unless `counterpartyStatus` is `Known`.")
    ]
    token: TokenReference
    amount: Annotated[
        Decimal | None,
        Meta(
            description="In whole tokens, or base units when decimals are unknown; null when the amount is unknown. "
            "It does not contain `fee`."
        ),
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
    counterparties: Annotated[
        list[Address], Meta(description="Addresses of the other side, at most the first 100; empty if not read.")
    ]
    counterparty_count: Annotated[
        int | None,
        Meta(description="Number of parties of the other side, those without an address too; null if not read."),
    ]
    counterparty_status: CounterpartyStatus
    fee: Annotated[
        Decimal | None,
        Meta(description="Fee that the wallet paid on top of the amount; null unless `feeStatus` is `Paid`."),
    ]
    fee_raw: BaseUnits | None
    fee_status: FeeStatus
    explanation: Annotated[Explanation, Meta(description="Only with `explain=true`.")] | UnsetType = UNSET


class TransactionInput(Schema, frozen=True, kw_only=True):
    """An input of a transaction."""

    output: Annotated[str, Meta(description="The output that it spends, as `transaction:position`.")]
    address: Annotated[Address | None, Meta(description="Null for a script without an address, or if not read.")]
    amount: Annotated[Decimal | None, Meta(description="In whole tokens; null if the output was not read.")]
    amount_raw: BaseUnits | None


class TransactionOutput(Schema, frozen=True, kw_only=True):
    """An output of a transaction."""

    address: Annotated[Address | None, Meta(description="Null for a script without an address.")]
    amount: Annotated[Decimal, Meta(description="In whole tokens.")]
    amount_raw: BaseUnits


class Transaction(Schema, frozen=True, kw_only=True):
    """Inputs and outputs of an activity's transaction, in the network's own asset."""

    header_time: Annotated[
        Instant, Meta(description="Time in the header of the block, which its miner chose. `date` never goes back.")
    ]
    input_count: int
    output_count: int
    inputs: Annotated[list[TransactionInput], Meta(description="At most the first 100; none of a coinbase.")]
    outputs: Annotated[list[TransactionOutput], Meta(description="At most the first 100.")]
    spendable_from_block: Annotated[
        int | None, Meta(description="First block that can spend the outputs; null unless it is a coinbase.")
    ]


class DescribedWalletActivity(WalletActivity, frozen=True, kw_only=True):
    """One movement seen from the wallet, with its transaction."""

    transaction: Annotated[Transaction | None, Meta(description="Null on networks without inputs and outputs.")]
    currency: Annotated[str, Meta(description="Currency of values.")]
    as_of: AsOf


class WalletActivities(Schema, frozen=True, kw_only=True):
    """A page of a wallet's activities."""

    data: list[WalletActivity]
    page: Page
    currency: Annotated[str, Meta(description="Currency of values.")]
    as_of: AsOf
    coverage: Coverage
