"""Attestations on the wire: what is asked for, how far it is, and what was found."""

from typing import Annotated, Literal

from msgspec import Meta

from api.schemas.common import BaseUnits, DataVersion, Decimal, HistoryStatus, Instant, Page, Schema
from api.schemas.inputs import described
from control.instants import NAMED_DAYS, pattern_of

AttestationStatus = Annotated[
    Literal["Reconciled", "Adjusted", "Incomplete"],
    Meta(
        description="`Reconciled`: a reading of the chain confirms every balance, and what was read was what was "
        "known. `Adjusted`: so it does, and some, or the supply of a token, were read to be another, which is booked. "
        "`Incomplete`: of some the contract gave no number."
    ),
]
SupersededBy = Annotated[
    Literal["NewHolder", "FilledGap", "ChainReset", "OtherBalance"] | None,
    Meta(
        description="What was learned since: `NewHolder`, another number of balances at the block; `FilledGap`, what "
        "was before the covered range was collected; `ChainReset`, the chain has another block in its place; "
        "`OtherBalance`, another balance at the block. Null: nothing."
    ),
]
_Number = Annotated[int, Meta(description="Number among the attestations of the token or wallet, from 1.")]
_BlockHash = Annotated[str, Meta(description="Hash that the block had.")]
_BlockTime = Annotated[
    Instant | None, Meta(description="Time of the block; null where the chain has another one in its place.")
]
_Differences = Annotated[
    int,
    Meta(description="Balances, and of a token the supply, that were read to be another than was known until then."),
]
_Unconfirmed = Annotated[int, Meta(description="Balances of which the contract gave no number.")]
_Automatic = Annotated[bool, Meta(description="Whether a period ended with the block; else it was asked for.")]
_Superseded = Annotated[
    bool, Meta(description="Whether something was learned since that the record, which stays as it is, does not hold.")
]


class AttestationRequest(Schema, frozen=True, kw_only=True):
    """A past moment whose balances are to be read."""

    as_of: Annotated[
        str,
        described(
            "Moment that is over and covered: an instant, a day (its end; `yesterday` and `last-month-end` are days, "
            "UTC), or `block:N`. Attested is the last block before its end, once that is final.",
            ["2026-01-31"],
            pattern=pattern_of(*NAMED_DAYS, blocks=True),
        ),
    ]
    dry_run: Annotated[
        bool, Meta(description="Answer what it would ask of the node, with 200, and store nothing, also no answer.")
    ] = False


class AttestationEstimate(Schema, frozen=True, kw_only=True):
    """What an attestation would ask of the network's node, at the pace at which it answered so far."""

    status: Annotated[
        Literal["Estimated", "NothingObserved"],
        Meta(
            description="`NothingObserved`: no balances of a past block were read from this node yet, so requests, "
            "bytes and seconds are null."
        ),
    ]
    detail: Annotated[str | None, Meta(description="Why figures are null.")]
    readings: Annotated[
        int, Meta(description="Balances at the moment that no reading confirms, and of a token the supply.")
    ]
    requests: Annotated[int | None, Meta(description="JSON-RPC requests, each call of a batch one.")]
    bytes: Annotated[int | None, Meta(description="Size of their answers, decompressed.")]
    seconds: Annotated[int | None, Meta(description="Time of reading, without waiting for cycles and budgets.")]
    max_requests_per_day: Annotated[
        int | None, Meta(description="Most requests of a day to this network, live tracking's first; null: no bound.")
    ]


class AttestationProgress(Schema, frozen=True, kw_only=True):
    """How much is read."""

    done: int
    total: Annotated[int | None, Meta(description="Null until it is known what is to be read.")]
    unit: Literal["balances"] = "balances"


class AttestationOperation(Schema, frozen=True, kw_only=True):
    """An attestation that was asked for, and how far it is; what was read stays when it is cancelled."""

    id: Annotated[str, Meta(description="`op_...`")]
    status: HistoryStatus
    progress: AttestationProgress
    resumes_at: Annotated[
        Instant | None, Meta(description="When one that is `WaitingForBudget` goes on; null for any other.")
    ]
    as_of: Annotated[str, Meta(description="As asked for.", examples=["2026-01-31"])]
    block_number: Annotated[
        int | None, Meta(description="Last block before the end of the moment; null until it is final.")
    ]
    attestation_number: Annotated[
        int | None, Meta(description="Number of the record that it leads to; null until the block is known.")
    ]
    error: Annotated[str | None, Meta(description="Why it failed, or what keeps it from getting on.")]
    created_at: Instant
    started_at: Instant | None
    cancel_requested_at: Annotated[Instant | None, Meta(description="Set once it was asked to stop.")]
    finished_at: Instant | None


class TokenAttestation(Schema, frozen=True, kw_only=True):
    """The record of one block of a token: its supply, and all its known holders."""

    number: _Number
    block_number: int
    block_hash: _BlockHash
    block_time: _BlockTime
    status: AttestationStatus
    holders: Annotated[int, Meta(description="Holders at the block.")]
    holders_read: Annotated[
        int, Meta(description="Balances that were read, also such as are zero; other readings confirmed the others.")
    ]
    differences: _Differences
    unconfirmed: _Unconfirmed
    sum_of_balances: Annotated[Decimal | None, Meta(description="In whole tokens; null when decimals are unknown.")]
    sum_of_balances_raw: BaseUnits
    total_supply: Annotated[
        Decimal | None, Meta(description="As read, in whole tokens; null when it or the decimals are unknown.")
    ]
    total_supply_raw: Annotated[BaseUnits | None, Meta(description="Null where the contract gave no number.")]
    supply_difference: Annotated[
        Decimal | None,
        Meta(
            description="The supply as read less the one known until then, in whole tokens; `0` where they agree. Null "
            "when either or the decimals are unknown."
        ),
    ]
    supply_difference_raw: Annotated[
        BaseUnits | None, Meta(description="The same in base units; null when either supply is unknown.")
    ]
    automatic: _Automatic
    attested_at: Annotated[Instant, Meta(description="When the last of it was read.")]
    superseded: _Superseded
    superseded_by: SupersededBy


class WalletAttestation(Schema, frozen=True, kw_only=True):
    """The record of one block of a wallet: all assets that it is known to have."""

    number: _Number
    block_number: int
    block_hash: _BlockHash
    block_time: _BlockTime
    status: AttestationStatus
    assets: Annotated[int, Meta(description="Assets that the wallet had at the block.")]
    assets_read: Annotated[
        int, Meta(description="Balances that were read, also such as are zero; other readings confirmed the others.")
    ]
    differences: _Differences
    unconfirmed: _Unconfirmed
    automatic: _Automatic
    attested_at: Annotated[Instant, Meta(description="When the last of it was read.")]
    superseded: _Superseded
    superseded_by: SupersededBy


class TokenAttestations(Schema, frozen=True, kw_only=True):
    """A page of a token's attestations, the newest block first."""

    data: list[TokenAttestation]
    page: Page
    as_of: DataVersion


class WalletAttestations(Schema, frozen=True, kw_only=True):
    """A page of a wallet's attestations, the newest block first."""

    data: list[WalletAttestation]
    page: Page
    as_of: DataVersion
