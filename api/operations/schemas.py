"""Structs of history requests: request, estimate and progress."""

from typing import Annotated, Literal

from msgspec import Meta, field

from api.schema import Decimal, HistoryStatus, Instant, Page, Schema
from control.networks import sampling
from control.operations import NativeModeName


class SecondReadings(Schema, frozen=True, kw_only=True):
    """Estimated requests of a second reading of the blocks, by mode; the network's definition chooses it."""

    mode: Annotated[
        Literal["full", "sample", "off"],
        Meta(description="Mode of this network for history requests: `verification` of its definition, else `sample`."),
    ]
    full: Annotated[int, Meta(description="Requests for all blocks.")]
    sample: Annotated[
        int, Meta(description="Requests for the first and last block of every range, and 2 percent of the rest.")
    ]
    off: Annotated[int, Meta(description="0: nothing is read a second time.")]


class FilesEstimate(Schema, frozen=True, kw_only=True):
    """Files of the network's data sets for blocks that are not collected for you yet. They have no native value."""

    data_sets: Annotated[list[str], Meta(description="Names of the data sets, in the order in which they are read.")]
    files: Annotated[int, Meta(description="Number of files.")]
    bytes: Annotated[int, Meta(description="Size of the files.")]
    days: Annotated[
        int | None, Meta(description="Number of days that the files' names have; null if they have block numbers.")
    ]
    blocks: Annotated[int, Meta(description="Number of blocks; for unread files of a day it is estimated.")]
    requests: Annotated[
        int,
        Meta(
            description="JSON-RPC requests that check the blocks against the node; until files were checked, "
            f"{sampling.REQUESTS_PER_UNIT} for the files of a day or of a range of blocks."
        ),
    ]
    seconds: Annotated[int | None, Meta(description="Time for the files; null until files were checked.")]


class HistoryEstimate(Schema, frozen=True, kw_only=True):
    """Estimated requests of a history request to the network's node, at its pace so far."""

    status: Annotated[
        Literal["Estimated", "AtMost", "RangeUnknown", "NothingObserved"],
        Meta(
            description="`AtMost`: the block of the contract's creation is unknown, so all blocks from the first one "
            "on are counted. `RangeUnknown`: the blocks of the range are unknown too. `NothingObserved`: no past range "
            "of this kind was collected from this node yet, so `requests`, `bytes` and `seconds` are null."
        ),
    ]
    detail: Annotated[str | None, Meta(description="The reason why numbers of the estimate are null or too high.")]
    from_block: Annotated[int | None, Meta(description="First block; estimated if the start is an instant.")]
    to_block: Annotated[int | None, Meta(description="Last block, included; estimated if the end is an instant.")]
    blocks: Annotated[int | None, Meta(description="Number of blocks of the range that are not collected for you yet.")]
    native: Annotated[NativeModeName | None, Meta(description="How a wallet's native value would be collected.")]
    requests: Annotated[
        int | None,
        Meta(
            description="Number of JSON-RPC requests for the blocks without `files`, and for native value of all "
            "blocks; each call of a batch counts as one."
        ),
    ]
    bytes: Annotated[int | None, Meta(description="Decompressed size of the responses to `requests`.")]
    seconds: Annotated[
        int | None, Meta(description="Time for the requests, without waiting for cycles or for the daily limit.")
    ]
    second_readings: Annotated[
        SecondReadings | None,
        Meta(
            description="Requests of a second reading of the blocks without `files`, in later cycles, beside "
            "`requests`; null when they are unknown."
        ),
    ]
    files: Annotated[
        FilesEstimate | None, Meta(description="The part of the blocks that files have; null if they have none of it.")
    ]
    max_requests_per_day: Annotated[
        int | None,
        Meta(
            description="Daily limit of requests to this network; null for no limit. Live tracking takes its requests "
            "first."
        ),
    ]


class Progress(Schema, frozen=True, kw_only=True):
    """Progress of the request."""

    done: int
    total: Annotated[int | None, Meta(description="Null until the range is known.")]
    unit: Literal["blocks"] = "blocks"


class HistoryOperation(Schema, frozen=True, kw_only=True):
    """A history request and its progress. Collected blocks stay when it is cancelled."""

    id: Annotated[str, Meta(description="`op_...`")]
    status: HistoryStatus
    progress: Progress
    rate: Annotated[
        Decimal | None,
        Meta(description="Recent speed in blocks per second, to three significant digits; null until measured."),
    ]
    estimated_end: Instant | None
    resumes_at: Annotated[
        Instant | None,
        Meta(description="Time at which a `WaitingForBudget` operation continues; null for any other status."),
    ]
    from_: Annotated[str, Meta(description="As written in the request.", examples=["creation"])] = field(name="from")
    to: Annotated[str, Meta(description="As written in the request.", examples=["now"])]
    from_block: Annotated[int | None, Meta(description="First block of the range; null until it is known.")]
    to_block: Annotated[int | None, Meta(description="Last block of the range, included; null until it is known.")]
    native: Annotated[
        NativeModeName | None, Meta(description="Null for tokens. For a wallet: null until the mode is decided.")
    ]
    note: Annotated[str | None, Meta(description="A remark, such as the cost of `full` native value.")]
    error: Annotated[str | None, Meta(description="The reason of the failure, or the reason why there is no progress.")]
    created_at: Instant
    started_at: Instant | None
    cancel_requested_at: Annotated[
        Instant | None, Meta(description="Time of the cancel request; null if there is none.")
    ]
    finished_at: Instant | None


TrackingHistory = Annotated[
    HistoryOperation | None,
    Meta(description="The history request that includes the requested `history`; null if none was requested."),
]


TrackingEstimate = Annotated[
    HistoryEstimate | None, Meta(description="Estimate for the requested `history`; null without `dryRun`.")
]


class HistoryOperations(Schema, frozen=True, kw_only=True):
    """A page of the history requests of one token or wallet, newest first."""

    data: list[HistoryOperation]
    page: Page
