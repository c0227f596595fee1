"""Structs and field types shared by several answers: amounts, pages, as-of, coverage, problems.

Structs of one resource belong to the package of that resource.
"""

from datetime import datetime
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from control.inputs import Address as Address
from control.inputs import DecimalText
from control.inputs import Schema as Schema
from control.inputs import TrackingStatus as TrackingStatus
from control.pricing.price_types import PriceType

Decimal = DecimalText
BaseUnits = Annotated[
    str, Meta(pattern="^-?(0|[1-9][0-9]*)$", description="Exact integer in base units.", examples=["1500000"])
]
Instant = Annotated[datetime, Meta(tz=True, description="Instant, UTC.", examples=["2026-01-31T12:00:00Z"])]
OwnName = Annotated[str | None, Meta(description="The tenant's own name for this address; null if there is none.")]
TransactionHash = Annotated[str, Meta(pattern="^(0x)?[0-9a-f]{64}$", description="Hash of the transaction.")]

ValueStatus = Annotated[
    Literal["Priced", "NoPair", "NoPrice", "StalePrice", "UnknownDecimals", "UnknownTime", "Quarantined"],
    Meta(
        description="`Priced` if the number is not null; otherwise the reason why it is null. `UnknownTime`: the time "
        "of the requested block was not stored."
    ),
]
ActivityValueStatus = Annotated[
    Literal[
        "Priced", "NoPair", "NoPrice", "StalePrice", "UnknownDecimals", "UnknownAmount", "UnknownTime", "Quarantined"
    ],
    Meta(
        description="The same as every value's status, or `UnknownAmount`: the amount of a wallet's activity is not "
        "known."
    ),
]
ActivityStatus = Literal["Confirmed", "Finalized"]
Finality = Literal["Confirmed", "Finalized"]
Reconciliation = Annotated[
    Literal["Reconciled", "Adjusted", "Unchecked"],
    Meta(
        description="`Unchecked`: no reading of the chain confirms the balance at the moment. `Adjusted`: a reading "
        "confirms it, but at or before the moment a reading differed from the movements. `Reconciled`: a reading "
        "confirms it, and none differed. A reading confirms a balance from the movement or adjustment before it to the "
        "next one. If a token's `behaviour` is not `Standard`, it confirms its own block only."
    ),
]
OpenedBy = Annotated[
    Literal["Observed", "Derived", "Creation"],
    Meta(
        description="Source of the balance at the start of its covered range. `Observed`: a reading at the block "
        "before it. `Derived`: a later reading minus the movements until then, never below 0. `Creation`: 0, because "
        "the range begins at or before the creation of the token."
    ),
]
Located = Annotated[
    bool | None,
    Meta(
        description="For a change without a known transaction. True if it happened in this block; false if the balance "
        "was only seen to differ at this block. Null for all other activities."
    ),
]
CheckedBlock = Annotated[
    int | None,
    Meta(
        description="Block of the reading that confirms the balance: the newest such reading up to the moment, or else "
        "the first one after it. For an `Unchecked` balance: block of the last reading up to the moment with which the "
        "balance was compared; null if there was none."
    ),
]
Interval = Literal["1h", "1d", "1w", "1M"]
IntervalStart = Annotated[
    str,
    Meta(
        description="Deprecated: the first day of the interval, or its first instant for hours. Use `from`, and `at` "
        "for the moment of the state. CSV and Parquet do not have it.",
        examples=["2026-01-31"],
        extra_json_schema={"deprecated": True},
    ),
]
IntervalFrom = Annotated[Instant, Meta(description="Start of the interval.", examples=["2026-01-01T00:00:00Z"])]
IntervalTo = Annotated[
    Instant, Meta(description="End of the interval, not included.", examples=["2026-02-01T00:00:00Z"])
]
IntervalAt = Annotated[
    Instant,
    Meta(
        description="The moment of the state: the last one before the interval's end, or before `to` of the request "
        "if that is earlier. While the interval is not over, it is the newest covered block's time.",
        examples=["2026-01-31T23:59:59.999999Z"],
    ),
]
IntervalComplete = Annotated[
    bool,
    Meta(
        description="False if the interval is not over, if `to` of the request lies inside it, or if `at` is not "
        "covered."
    ),
]
OperationStatus = Literal["Pending", "Running", "Succeeded", "Failed", "Cancelled"]
HistoryStatus = Annotated[
    Literal["Pending", "Running", "WaitingForBudget", "Succeeded", "Failed", "Cancelled"],
    Meta(description="`WaitingForBudget`: not finished; the daily limit of requests to the network's node is used up."),
]
GapReason = Literal["TrackingDisabled", "NotYetCollected", "ProviderFailed", "BeforeTracking", "NeverTracked"]


class Form(Schema, frozen=True, kw_only=True):
    """Form fields that a report page sends; the token is the credential."""

    token: Annotated[str, Meta(description="The embed token.")]


MetadataStatus = Annotated[
    Literal["Unconfirmed", "Confirmed", "Contradicted"],
    Meta(
        description="Result of a second reading of the token's contract, at another block. `Unconfirmed`: the contract "
        "was read once. `Confirmed`: a later reading agreed. `Contradicted`: the latest reading differs; amounts "
        "still use the earlier one."
    ),
]


class TokenReference(Schema, frozen=True, kw_only=True):
    """The asset of an activity or a position."""

    symbol: Annotated[str | None, Meta(description="As read from the contract; null when unknown.")]
    ledger_id: Annotated[str, Meta(description="Address of the contract, or `native` for the network's own asset.")]
    token_id: Annotated[str | None, Meta(description="Your token with this contract, when you have one.")]


class FileSubject(Schema, frozen=True, kw_only=True):
    """The token or wallet of a file's rows."""

    kind: Literal["token", "wallet"]
    id: Annotated[str, Meta(description="`tok_...` or `wal_...`")]
    symbol: Annotated[str | None, Meta(description="Symbol of a token.")]
    name: OwnName
    ledger: Annotated[str, Meta(description="Name of the ledger.")]
    ledger_id: Address


class Page(Schema, frozen=True, kw_only=True):
    """Page size of a list, and the cursor of its next page."""

    limit: Annotated[int, Meta(ge=1, le=1000, description="Largest number of rows in a page.")]
    next_cursor: Annotated[str | None, Meta(description="Pass as `cursor` to get the next page; null on the last one.")]


DataNumber = Annotated[
    int,
    Meta(description="Version number of the tenant's data. It increases whenever data that the tenant sees changes."),
]


class AsOf(Schema, frozen=True, kw_only=True):
    """The moment of the ledger that an answer describes; block fields are null while nothing is collected."""

    ledger: Annotated[str, Meta(description="Name of the ledger.")]
    block_number: Annotated[
        int | None,
        Meta(
            description="The newest covered block, or the block requested by number. For an instant or a day: the "
            "newest block before its end that was stored for your view. Your view has no data between that block and "
            "`at`."
        ),
    ]
    block_hash: Annotated[str | None, Meta(description="Hash of the block; null when it was not stored.")]
    block_time: Annotated[Instant | None, Meta(description="Time of the block; null when it was not stored.")]
    finality: Annotated[
        Finality | None,
        Meta(description="`Finalized` if the block is final; `Confirmed` if a reorganisation can still replace it."),
    ]
    at: Annotated[
        Instant | None,
        Meta(
            description="The moment of the prices that are used: the requested instant, the last microsecond of the "
            "day, or the time of the block. Null when the block's time was not stored."
        ),
    ]
    data_version: DataNumber


AsOfStatus = Annotated[
    Literal["Covered", "NothingCovered", "BeforeCreation"],
    Meta(
        description="The reason why the block of `asOf` is null, or `Covered`. `NothingCovered`: nothing is collected "
        "yet. `BeforeCreation`: the moment is before the creation of the token's contract, so there are no holders."
    ),
]


class DataVersion(Schema, frozen=True, kw_only=True):
    """The data version of a list that covers several ledgers."""

    data_version: DataNumber


class Gap(Schema, frozen=True, kw_only=True):
    """A range that is not collected; a bound is null if it is unknown or open."""

    from_: Instant | None = field(name="from")
    to: Instant | None
    from_block: int | None
    to_block: int | None
    reason: GapReason


class Coverage(Schema, frozen=True, kw_only=True):
    """The collected part of the requested range."""

    complete: Annotated[bool, Meta(description="True when the range has no gap.")]
    from_: Instant | None = field(name="from")
    to: Instant | None
    gaps: list[Gap]


class Window(Schema, frozen=True, kw_only=True):
    """A period in which tracking was enabled; `to` is null while tracking is enabled."""

    from_: Instant = field(name="from")
    to: Instant | None


Verified = Literal["true", "sampled", "false"]


class CollectedRange(Schema, frozen=True, kw_only=True):
    """Blocks collected without a gap; a time is null when its block was not stored."""

    from_: Annotated[Instant | None, Meta(description="Time of the first block.")] = field(name="from")
    to: Annotated[Instant | None, Meta(description="Time of the last block.")]
    from_block: int
    to_block: Annotated[int, Meta(description="Included.")]
    verified: Annotated[
        Verified,
        Meta(
            description="`true`: all final blocks of the range were read a second time. `sampled`: at least a sample "
            "of them was. `false`: neither, or not yet."
        ),
    ]
    source: Annotated[
        str,
        Meta(
            description="Origin of the rows: `node`, or the name of a data set of files. Several names are sorted and "
            "joined by a comma and a space.",
            examples=["aws, node"],
        ),
    ]


class HistoryRange(Schema, frozen=True, kw_only=True):
    """A history request with its range; the blocks are null until they are known."""

    operation_id: Annotated[str, Meta(description="`op_...`")]
    from_: Annotated[str, Meta(description="As written in the request.", examples=["creation"])] = field(name="from")
    to: Annotated[str, Meta(description="As written in the request.", examples=["now"])]
    from_block: int | None
    to_block: int | None
    status: HistoryStatus


class SubjectCoverage(Schema, frozen=True, kw_only=True):
    """The collected ranges of a token or a wallet over the whole chain, and every gap with its reason."""

    windows: Annotated[list[Window], Meta(description="Periods in which tracking was enabled, oldest first.")]
    history: Annotated[list[HistoryRange], Meta(description="History requests, oldest first.")]
    collected: Annotated[
        list[CollectedRange], Meta(description="In order and without overlaps; adjacent ranges are joined.")
    ]
    gaps: Annotated[list[Gap], Meta(description="Ranges before, between and after the collected ones.")]
    as_of: AsOf


class WriteWarning(Schema, frozen=True, kw_only=True):
    """A reason why a stored object does not work with the present settings."""

    code: Annotated[
        Literal["network-disabled"],
        Meta(description="`network-disabled`: the service has no node of the network, so nothing is collected on it."),
    ]
    detail: Annotated[str, Meta(description="The reason and the fix, as text.")]


Warnings = Annotated[
    list[WriteWarning],
    Meta(description="Reasons why the stored object does not work with the present settings; may be empty."),
]


class FieldError(Schema, frozen=True, kw_only=True):
    """One invalid value: its `pointer` into the body, or the name of the `parameter`."""

    code: str
    detail: str
    pointer: Annotated[str, Meta(description="JSON pointer into the request body.")] | UnsetType = UNSET
    parameter: Annotated[str, Meta(description="Name of the parameter or header.")] | UnsetType = UNSET


class PairChoice(Schema, frozen=True, kw_only=True):
    """A candidate pair."""

    pair_id: Annotated[str, Meta(description="`pair_...`, to be sent as `pairId`.")]
    price_type: PriceType
    price_sources: Annotated[list[str], Meta(description="Ids of its price sources, in order of preference.")]


class Problem(Schema, frozen=True, kw_only=True):
    """An error, as RFC 9457 describes it."""

    type: Annotated[str, Meta(description="URN of the type of problem.")]
    title: str
    status: int
    detail: Annotated[str, Meta(description="The problem and how to solve it.")]
    instance: Annotated[str, Meta(description="Path of the request.")]
    code: Annotated[str, Meta(description="Code of the problem, for programs.")]
    request_id: str
    errors: Annotated[list[FieldError], Meta(description="The invalid values.")]
    existing_id: Annotated[str, Meta(description="409: the existing object that causes the conflict.")] | UnsetType = (
        UNSET
    )
    required_role: Annotated[str, Meta(description="403: the lowest role that may do this.")] | UnsetType = UNSET
    pairs: (
        Annotated[
            list[PairChoice],
            Meta(description="409 `several-usd-pairs`: the pairs; send one of them as `pairId`."),
        ]
        | UnsetType
    ) = UNSET
    before: (
        Annotated[Instant | None, Meta(description="409 `not-covered`: nearest covered instant before.")] | UnsetType
    ) = UNSET
    after: (
        Annotated[Instant | None, Meta(description="409 `not-covered`: nearest covered instant after.")] | UnsetType
    ) = UNSET
    gaps: (
        Annotated[
            list[Gap],
            Meta(description="409 `not-covered`: the gaps around the moment, as in `coverage`."),
        ]
        | UnsetType
    ) = UNSET
