"""History requests on the wire: what is asked for, and how far it is."""

from typing import Annotated, Literal

from msgspec import Meta, field

from api.schemas.common import Decimal, HistoryStatus, Instant, Page, Schema
from api.schemas.inputs import described
from control.instants import pattern_of

HISTORY_START = pattern_of("creation", blocks=True)
"""Pattern (JSON Schema) of the start of a history request."""

NativeMode = Literal["full", "balance-only"]


class HistoryRequest(Schema, frozen=True, kw_only=True):
    """A past range to collect."""

    from_: Annotated[
        str,
        described(
            "Start, included: an instant, a day (its start), `block:N`, or `creation`, the first block of the contract "
            "(of a wallet: of the chain).",
            ["creation"],
            pattern=HISTORY_START,
        ),
    ] = field(name="from")
    to: Annotated[
        str,
        described(
            "End: an instant or a day, not included; `block:N`, included; or `now`. Clipped to the head.",
            ["now"],
            pattern=pattern_of("now", blocks=True),
        ),
    ] = "now"
    native: Annotated[
        NativeMode | None,
        Meta(
            description="Wallets alone: how native value is collected. `full` reads every block's transactions and "
            "internal transfers, `balance-only` books each unexplained change of the balance as one activity. Left "
            "out, a long range is collected by balances alone, and `note` says what full would cost."
        ),
    ] = None
    dry_run: Annotated[
        bool, Meta(description="Answer what it would ask of the node, with 200, and store nothing, also no answer.")
    ] = False


class HistoryEstimate(Schema, frozen=True, kw_only=True):
    """What a history request would ask of the network's node, at the pace at which it answered so far."""

    status: Annotated[
        Literal["Estimated", "AtMost", "RangeUnknown", "NothingObserved"],
        Meta(
            description="`AtMost`: it is not known when the contract was created, so all blocks from the first one on "
            "are counted. `RangeUnknown`: nor is it known which blocks are meant. `NothingObserved`: no past range of "
            "the kind was collected from this node yet, so requests, bytes and seconds are null."
        ),
    ]
    detail: Annotated[str | None, Meta(description="Why figures are null, or too high.")]
    from_block: Annotated[int | None, Meta(description="First block; of an instant, estimated.")]
    to_block: Annotated[int | None, Meta(description="Last block, included; of an instant, estimated.")]
    blocks: Annotated[int | None, Meta(description="Those of them that are not collected for you yet.")]
    native: Annotated[NativeMode | None, Meta(description="How a wallet's native value would be collected.")]
    requests: Annotated[int | None, Meta(description="JSON-RPC requests, each call of a batch one.")]
    bytes: Annotated[int | None, Meta(description="Size of their answers, decompressed.")]
    seconds: Annotated[int | None, Meta(description="Time of reading, without waiting for cycles and budgets.")]
    max_requests_per_day: Annotated[
        int | None, Meta(description="Most requests of a day to this network, live tracking's first; null: no bound.")
    ]


class Progress(Schema, frozen=True, kw_only=True):
    """How much is done."""

    done: int
    total: Annotated[int | None, Meta(description="Null until the range is known.")]
    unit: Literal["blocks"] = "blocks"


class HistoryOperation(Schema, frozen=True, kw_only=True):
    """A history request and how far it is; what was collected stays when it is cancelled."""

    id: Annotated[str, Meta(description="`op_...`")]
    status: HistoryStatus
    progress: Progress
    rate: Annotated[Decimal | None, Meta(description="Blocks per second of late; null while nothing was measured.")]
    estimated_end: Instant | None
    resumes_at: Annotated[
        Instant | None, Meta(description="When one that is `WaitingForBudget` goes on; null for any other.")
    ]
    from_: Annotated[str, Meta(description="As asked for.", examples=["creation"])] = field(name="from")
    to: Annotated[str, Meta(description="As asked for.", examples=["now"])]
    from_block: Annotated[int | None, Meta(description="First block of the range; null until it is known.")]
    to_block: Annotated[int | None, Meta(description="Last block of the range, included; null until it is known.")]
    native: Annotated[NativeMode | None, Meta(description="Null for tokens, and while it is not decided.")]
    note: Annotated[str | None, Meta(description="A remark, such as what full native value would cost.")]
    error: Annotated[str | None, Meta(description="Why it failed, or what keeps it from getting on.")]
    created_at: Instant
    started_at: Instant | None
    cancel_requested_at: Annotated[Instant | None, Meta(description="Set once it was asked to stop.")]
    finished_at: Instant | None


TrackingHistory = Annotated[
    HistoryOperation | None,
    Meta(description="The request that has the `history` asked for; null where none was asked for."),
]


TrackingEstimate = Annotated[
    HistoryEstimate | None, Meta(description="What the `history` asked for would cost; null without `dryRun`.")
]


class HistoryOperations(Schema, frozen=True, kw_only=True):
    """A page of the history requests of one token or wallet, newest first."""

    data: list[HistoryOperation]
    page: Page
