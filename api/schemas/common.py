"""Structs and field types that several answers share: amounts, pages, as-of, coverage, problems.

Structs of one resource go into its own module beside this one.
"""

import decimal
import re
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

from control.pricing.price_types import PriceType

DECIMAL_INPUT = re.compile(r"-?\d+(\.\d+)?([Ee][+-]?\d+)?", re.ASCII)
"""How requests write decimals in strings."""

_DECIMAL = r"^-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?$"


class ExactNumber(decimal.Decimal):
    """A decimal in a request: a JSON number or a decimal in a string, never through a float."""


Decimal = Annotated[str, Meta(pattern=_DECIMAL, description="Exact decimal, no exponent.", examples=["1.5"])]
BaseUnits = Annotated[
    str, Meta(pattern="^-?(0|[1-9][0-9]*)$", description="Exact integer in base units.", examples=["1500000"])
]
Instant = Annotated[datetime, Meta(tz=True, description="Instant, UTC.", examples=["2026-01-31T12:00:00Z"])]
Address = Annotated[
    str,
    Meta(
        description="Address in its family's canonical form.", examples=["0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"]
    ),
]
OwnName = Annotated[str | None, Meta(description="How the tenant calls this address; null when it does not.")]
TransactionHash = Annotated[str, Meta(pattern="^0x[0-9a-f]{64}$", description="Hash of the transaction.")]

ValueStatus = Annotated[
    Literal["Priced", "NoPair", "NoPrice", "StalePrice", "UnknownDecimals", "UnknownTime", "Quarantined"],
    Meta(
        description="Why the number beside it is null, or `Priced` when it is there; `UnknownTime`: the time of the "
        "block asked about was not stored."
    ),
]
ActivityValueStatus = Annotated[
    Literal[
        "Priced", "NoPair", "NoPrice", "StalePrice", "UnknownDecimals", "UnknownAmount", "UnknownTime", "Quarantined"
    ],
    Meta(description="As every value's status, or `UnknownAmount`: what a wallet's activity moved is not known."),
]
TrackingStatus = Literal["enabled", "disabled"]
ActivityStatus = Literal["Confirmed", "Finalized"]
Finality = Literal["Confirmed", "Finalized"]
Reconciliation = Annotated[
    Literal["Reconciled", "Adjusted", "Unchecked"],
    Meta(
        description="`Unchecked`: no reading of the chain confirms the balance at the moment. Confirmed, `Adjusted` "
        "where readings differed from the movements up to the moment, else `Reconciled`. A reading confirms a balance "
        "from the movement or adjustment before it to the next one; of a token whose `behaviour` is not `Standard`, at "
        "its own block alone."
    ),
]
OpenedBy = Annotated[
    Literal["Observed", "Derived", "Creation"],
    Meta(
        description="How the balance opened its covered range: read at the block before it; a later reading less the "
        "movements until then, never below 0; or 0, because the range begins no later than the token."
    ),
]
Located = Annotated[
    bool | None,
    Meta(
        description="Of a change that no transaction is known for: whether it happened in this block; false when that "
        "block was only found to have another balance. Null for anything else."
    ),
]
CheckedBlock = Annotated[
    int | None,
    Meta(
        description="Block of the reading that confirms the balance: the newest up to the moment, else the first after "
        "it. Where none does, that of the last comparison with the chain up to the moment; null when never."
    ),
]
Interval = Literal["1h", "1d", "1w", "1M"]
IntervalStart = Annotated[
    str,
    Meta(
        description="Deprecated: the first day of the interval, or its first instant for hours. Read `from`, and `at` "
        "for the moment of the state. Not in CSV and Parquet.",
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
        "where that is earlier. While the interval is not over, it is the newest covered block's time.",
        examples=["2026-01-31T23:59:59.999999Z"],
    ),
]
IntervalComplete = Annotated[
    bool, Meta(description="False while the interval is not over, where `to` cuts it, or where `at` is not covered.")
]
OperationStatus = Literal["Pending", "Running", "Succeeded", "Failed", "Cancelled"]
HistoryStatus = Annotated[
    Literal["Pending", "Running", "WaitingForBudget", "Succeeded", "Failed", "Cancelled"],
    Meta(
        description="`WaitingForBudget`: not finished, and the requests that its network's node is asked in a day at "
        "most are used up."
    ),
]
GapReason = Literal["TrackingDisabled", "NotYetCollected", "ProviderFailed", "BeforeTracking", "NeverTracked"]


class Schema(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of every struct that crosses the wire."""

    @property
    def has_all_rows(self) -> bool:
        """Say whether complete coverage means that no row is missing; rows of unknown holders would be."""
        return True


class Form(Schema, frozen=True, kw_only=True):
    """Base of what a page sends as a browser sends a form; its token is the credential."""

    token: Annotated[str, Meta(description="The embed token.")]


class TokenReference(Schema, frozen=True, kw_only=True):
    """The asset of an activity or a position."""

    symbol: Annotated[str | None, Meta(description="As the contract says; null when unknown.")]
    ledger_id: Annotated[str, Meta(description="Address of the contract, or `native` for the network's own asset.")]
    token_id: Annotated[str | None, Meta(description="Your token with this contract, when you have one.")]


class FileSubject(Schema, frozen=True, kw_only=True):
    """The token or wallet that the rows of a file are of."""

    kind: Literal["token", "wallet"]
    id: Annotated[str, Meta(description="`tok_...` or `wal_...`")]
    symbol: Annotated[str | None, Meta(description="Of a token.")]
    name: OwnName
    ledger: Annotated[str, Meta(description="Name of the ledger.")]
    ledger_id: Address


class Page(Schema, frozen=True, kw_only=True):
    """Where a collection goes on."""

    limit: Annotated[int, Meta(ge=1, le=1000, description="Most rows of a page.")]
    next_cursor: Annotated[str | None, Meta(description="Pass as `cursor` to get the next page; null on the last one.")]


DataNumber = Annotated[int, Meta(description="Number of the tenant's data: raised when something it sees changes.")]


class AsOf(Schema, frozen=True, kw_only=True):
    """The moment of the ledger that an answer describes; block fields are null while nothing is collected."""

    ledger: Annotated[str, Meta(description="Name of the ledger.")]
    block_number: Annotated[
        int | None,
        Meta(
            description="The newest covered block, the one asked for by number, or the newest block before the end of "
            "the instant or day asked for that was stored for your view; nothing you see lies between that block and "
            "`at`."
        ),
    ]
    block_hash: Annotated[str | None, Meta(description="Hash of the block; null when it was not stored.")]
    block_time: Annotated[Instant | None, Meta(description="Time of the block; null when it was not stored.")]
    finality: Annotated[Finality | None, Meta(description="Whether the block can still be reorganised away.")]
    at: Annotated[
        Instant | None,
        Meta(
            description="The moment whose prices count: the instant asked for, the last microsecond of the day, or the "
            "time of the block; null when that was not stored."
        ),
    ]
    data_version: DataNumber


AsOfStatus = Annotated[
    Literal["Covered", "NothingCovered", "BeforeCreation"],
    Meta(
        description="Why the block of `asOf` is null, or `Covered`. `NothingCovered`: nothing is collected yet; "
        "`BeforeCreation`: the moment is before the token's contract was there, so nobody held anything."
    ),
]


class DataVersion(Schema, frozen=True, kw_only=True):
    """As-of of a list over several ledgers."""

    data_version: DataNumber


class Gap(Schema, frozen=True, kw_only=True):
    """A range that is not collected; a bound is null where it is unknown or open."""

    from_: Instant | None = field(name="from")
    to: Instant | None
    from_block: int | None
    to_block: int | None
    reason: GapReason


class Coverage(Schema, frozen=True, kw_only=True):
    """What of the range asked about is collected."""

    complete: Annotated[bool, Meta(description="True when the range has no gap.")]
    from_: Instant | None = field(name="from")
    to: Instant | None
    gaps: list[Gap]


class Window(Schema, frozen=True, kw_only=True):
    """A period in which tracking was enabled; `to` is null while it is."""

    from_: Instant = field(name="from")
    to: Instant | None


class CollectedRange(Schema, frozen=True, kw_only=True):
    """Blocks collected without a gap; a time is null when its block was not stored."""

    from_: Annotated[Instant | None, Meta(description="Time of the first block.")] = field(name="from")
    to: Annotated[Instant | None, Meta(description="Time of the last block.")]
    from_block: int
    to_block: Annotated[int, Meta(description="Included.")]


class HistoryRange(Schema, frozen=True, kw_only=True):
    """A history request: what was asked for, and the blocks it means, null until they are known."""

    operation_id: Annotated[str, Meta(description="`op_...`")]
    from_: Annotated[str, Meta(description="As asked for.", examples=["creation"])] = field(name="from")
    to: Annotated[str, Meta(description="As asked for.", examples=["now"])]
    from_block: int | None
    to_block: int | None
    status: HistoryStatus


class SubjectCoverage(Schema, frozen=True, kw_only=True):
    """What is collected of a token or a wallet, and what is not and why, over the whole chain."""

    windows: Annotated[list[Window], Meta(description="Periods in which tracking was enabled, oldest first.")]
    history: Annotated[list[HistoryRange], Meta(description="History requests, oldest first.")]
    collected: Annotated[list[CollectedRange], Meta(description="In order; disjoint, and never adjacent.")]
    gaps: Annotated[list[Gap], Meta(description="What lies before, between and after them.")]
    as_of: AsOf


class WriteWarning(Schema, frozen=True, kw_only=True):
    """A reason for which something that was stored does not work as it stands."""

    code: Annotated[
        Literal["network-disabled"],
        Meta(description="`network-disabled`: the service has no node of the network, so nothing is collected on it."),
    ]
    detail: Annotated[str, Meta(description="The reason and the fix, for people.")]


Warnings = Annotated[
    list[WriteWarning],
    Meta(description="Reasons for which the stored object does not work with the present settings; may be empty."),
]


class FieldError(Schema, frozen=True, kw_only=True):
    """One value that is wrong: `pointer` into the body or the name of a `parameter`."""

    code: str
    detail: str
    pointer: Annotated[str, Meta(description="JSON pointer into the request body.")] | UnsetType = UNSET
    parameter: Annotated[str, Meta(description="Name of the parameter or header.")] | UnsetType = UNSET


class PairChoice(Schema, frozen=True, kw_only=True):
    """A pair that could be meant."""

    pair_id: Annotated[str, Meta(description="`pair_...`, to be sent as `pairId`.")]
    price_type: PriceType
    price_sources: Annotated[list[str], Meta(description="Ids of its price sources, the one asked first in front.")]


class Problem(Schema, frozen=True, kw_only=True):
    """An error, as RFC 9457 describes it."""

    type: Annotated[str, Meta(description="URN of the kind of problem.")]
    title: str
    status: int
    detail: Annotated[str, Meta(description="What is wrong and what to do.")]
    instance: Annotated[str, Meta(description="Path of the request.")]
    code: Annotated[str, Meta(description="Kind of problem, for programs.")]
    request_id: str
    errors: Annotated[list[FieldError], Meta(description="The single values that are wrong.")]
    existing_id: Annotated[str, Meta(description="409: the object in the way.")] | UnsetType = UNSET
    required_role: Annotated[str, Meta(description="403: the lowest role that may do this.")] | UnsetType = UNSET
    pairs: (
        Annotated[list[PairChoice], Meta(description="409 `several-usd-pairs`: the pairs, of which one must be named.")]
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
            Meta(description="409 `not-covered`: what is missing at the moment, as in `coverage`."),
        ]
        | UnsetType
    ) = UNSET
