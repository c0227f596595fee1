"""Structs of attestations: request, estimate, progress and records."""

from typing import Annotated, Literal

from msgspec import Meta

from api.schema import BaseUnits, DataVersion, Decimal, HistoryStatus, Instant, Page, Schema
from control.inputs import described
from control.instants import NAMED_DAYS, pattern_of

AttestationStatus = Annotated[
    Literal["Reconciled", "Adjusted", "Incomplete"],
    Meta(
        description="`Reconciled`: a reading of the chain confirms every balance, and no reading differed from the "
        "known number. `Adjusted`: a reading confirms every balance, and some balances or the supply of a token "
        "differed; the differences are booked. `Incomplete`: the contract returned no number for some balances."
    ),
]
SupersededBy = Annotated[
    Literal["NewHolder", "FilledGap", "ChainReset", "OtherBalance"] | None,
    Meta(
        description="The later finding that the record does not contain; null if there is none. `NewHolder`: the block "
        "has a different number of balances. `FilledGap`: history before the covered range was collected. "
        "`ChainReset`: the chain has another block in its place. `OtherBalance`: the block has a different balance."
    ),
]
_Number = Annotated[int, Meta(description="Number of the attestation of the token or wallet, counted from 1.")]
_BlockHash = Annotated[str, Meta(description="Hash of the block at the time of the attestation.")]
_BlockTime = Annotated[
    Instant | None, Meta(description="Time of the block; null if the chain has another block in its place.")
]
_Differences = Annotated[
    int,
    Meta(
        description="Number of balances that differed from the known number when they were read. The supply of a token "
        "counts as one of them."
    ),
]
_Unconfirmed = Annotated[int, Meta(description="Number of balances for which the contract returned no number.")]
_Automatic = Annotated[
    bool, Meta(description="True if it was made automatically at the end of a period; false if it was requested.")
]
_Superseded = Annotated[
    bool,
    Meta(
        description="True if there is a later finding that the record does not contain. The record itself is never "
        "changed."
    ),
]


class AttestationRequest(Schema, frozen=True, kw_only=True):
    """A past moment to attest: its balances are read from the chain."""

    as_of: Annotated[
        str,
        described(
            "A past, covered moment: an instant, a day (its end; `yesterday` and `last-month-end` are days, UTC), or "
            "`block:N`. The last block before its end is attested as soon as that block is final.",
            ["2026-01-31"],
            pattern=pattern_of(*NAMED_DAYS, blocks=True),
        ),
    ]
    dry_run: Annotated[
        bool,
        Meta(
            description="Return an estimate of the requests to the node, with status 200. Nothing is stored, not even "
            "the answer for its `Idempotency-Key`."
        ),
    ] = False


class AttestationEstimate(Schema, frozen=True, kw_only=True):
    """Estimated requests of an attestation to the network's node, at its pace so far."""

    status: Annotated[
        Literal["Estimated", "NothingObserved"],
        Meta(
            description="`NothingObserved`: no balances of past blocks were read from this node yet, so `requests`, "
            "`bytes` and `seconds` are null."
        ),
    ]
    detail: Annotated[str | None, Meta(description="The reason why numbers of the estimate are null.")]
    readings: Annotated[
        int,
        Meta(
            description="Number of balances at the moment that no reading confirms; for a token, the supply counts too."
        ),
    ]
    requests: Annotated[
        int | None, Meta(description="Number of JSON-RPC requests; each call of a batch counts as one.")
    ]
    bytes: Annotated[int | None, Meta(description="Decompressed size of the responses.")]
    seconds: Annotated[
        int | None, Meta(description="Time for the requests, without waiting for cycles or for the daily limit.")
    ]
    max_requests_per_day: Annotated[
        int | None,
        Meta(
            description="Daily limit of requests to this network; null for no limit. Live tracking takes its requests "
            "first."
        ),
    ]


class AttestationProgress(Schema, frozen=True, kw_only=True):
    """Progress of the reading."""

    done: int
    total: Annotated[int | None, Meta(description="Null until the number of balances is known.")]
    unit: Literal["balances"] = "balances"


class AttestationOperation(Schema, frozen=True, kw_only=True):
    """A requested attestation and its progress. Readings that are done stay when it is cancelled."""

    id: Annotated[str, Meta(description="`op_...`")]
    status: HistoryStatus
    progress: AttestationProgress
    resumes_at: Annotated[
        Instant | None,
        Meta(description="Time at which a `WaitingForBudget` operation continues; null for any other status."),
    ]
    as_of: Annotated[str, Meta(description="As written in the request.", examples=["2026-01-31"])]
    block_number: Annotated[
        int | None, Meta(description="Last block before the end of the moment; null until that block is final.")
    ]
    attestation_number: Annotated[
        int | None, Meta(description="Number of the attestation that it makes; null until the block is known.")
    ]
    error: Annotated[str | None, Meta(description="The reason of the failure, or the reason why there is no progress.")]
    created_at: Instant
    started_at: Instant | None
    cancel_requested_at: Annotated[
        Instant | None, Meta(description="Time of the cancel request; null if there is none.")
    ]
    finished_at: Instant | None


class TokenAttestation(Schema, frozen=True, kw_only=True):
    """The record of one block of a token: its supply and all its known holders."""

    number: _Number
    block_number: int
    block_hash: _BlockHash
    block_time: _BlockTime
    status: AttestationStatus
    holders: Annotated[int, Meta(description="Number of holders at the block.")]
    holders_read: Annotated[
        int,
        Meta(description="Number of balances that were read, zero balances included; other readings confirm the rest."),
    ]
    differences: _Differences
    unconfirmed: _Unconfirmed
    sum_of_balances: Annotated[Decimal | None, Meta(description="In whole tokens; null when decimals are unknown.")]
    sum_of_balances_raw: BaseUnits
    total_supply: Annotated[
        Decimal | None,
        Meta(description="Supply that was read, in whole tokens; null when the supply or the decimals are unknown."),
    ]
    total_supply_raw: Annotated[BaseUnits | None, Meta(description="Null if the contract returned no number.")]
    supply_difference: Annotated[
        Decimal | None,
        Meta(
            description="Supply that was read minus the supply known before, in whole tokens; `0` if they are equal. "
            "Null when one of them or the decimals are unknown."
        ),
    ]
    supply_difference_raw: Annotated[
        BaseUnits | None, Meta(description="The same in base units; null when either supply is unknown.")
    ]
    automatic: _Automatic
    attested_at: Annotated[Instant, Meta(description="Time of the last reading.")]
    superseded: _Superseded
    superseded_by: SupersededBy


class WalletAttestation(Schema, frozen=True, kw_only=True):
    """The record of one block of a wallet: all its known assets."""

    number: _Number
    block_number: int
    block_hash: _BlockHash
    block_time: _BlockTime
    status: AttestationStatus
    assets: Annotated[int, Meta(description="Number of assets that the wallet had at the block.")]
    assets_read: Annotated[
        int,
        Meta(description="Number of balances that were read, zero balances included; other readings confirm the rest."),
    ]
    differences: _Differences
    unconfirmed: _Unconfirmed
    automatic: _Automatic
    attested_at: Annotated[Instant, Meta(description="Time of the last reading.")]
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
