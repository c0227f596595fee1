"""Networks and ledgers on the wire."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from api.schemas.common import (
    DataVersion,
    Instant,
    Interval,
    IntervalFrom,
    IntervalStart,
    IntervalTo,
    Page,
    Schema,
    Warnings,
)
from api.schemas.inputs import described, line, text, whole
from control.fields import DESCRIPTION_LENGTH, NAME_LENGTH
from control.ledgers import NAME
from control.networks.families import FAMILIES

ProbedStatus = Literal["Healthy", "Unreachable", "Unhealthy", "WrongChain", "ClockSkew", "Disabled", "NotProbed"]


class Capabilities(Schema, frozen=True, kw_only=True):
    """What the network's node can do; null until it was probed."""

    internal_transfers: Annotated[bool | None, Meta(description="The node traces internal transfers of native value.")]
    archive: Annotated[bool | None, Meta(description="The node answers for old states.")]


class Network(Schema, frozen=True, kw_only=True):
    """A preconfigured network."""

    name: Annotated[str, Meta(description="Name in paths.", examples=["ethereum"])]
    display_name: str
    family: Annotated[str, Meta(description="Kind of network; decides the form of addresses.", examples=list(FAMILIES))]
    is_testnet: bool
    chain_id: Annotated[
        int | None,
        Meta(description="Number by which clients know the chain; null where its family has none.", examples=[1]),
    ]
    native_symbol: Annotated[str, Meta(description="Symbol of the native asset.", examples=["ETH"])]
    address_format: Annotated[str, Meta(description="What an address looks like, for people.")]
    capabilities: Capabilities
    status: Annotated[
        ProbedStatus,
        Meta(description="State of the network's node; `Disabled` without a node, `NotProbed` until it was looked at."),
    ]
    status_detail: Annotated[
        str | None, Meta(description="What is wrong and what to do, or until when history waits for its budget.")
    ]


class Networks(Schema, frozen=True, kw_only=True):
    """All networks, in the order of their definitions."""

    data: list[Network]
    page: Page
    as_of: DataVersion


class LedgerPut(Schema, frozen=True, kw_only=True):
    """A ledger to create or to change."""

    name: Annotated[str, described("Unique for the tenant.", ["ethereum-main"], pattern=whole(NAME))]
    display_name: Annotated[str | None, line(NAME_LENGTH, "Name for people.")] = None
    description: Annotated[str | None, text(DESCRIPTION_LENGTH, "For people.")] = None


class LedgerPatch(Schema, frozen=True, kw_only=True):
    """Changes to a ledger; what is left out stays, null clears. Network and name are fixed."""

    display_name: Annotated[str | None, line(NAME_LENGTH, "Name for people.")] | UnsetType = UNSET
    description: Annotated[str | None, text(DESCRIPTION_LENGTH, "For people.")] | UnsetType = UNSET


class Ledger(Schema, frozen=True, kw_only=True):
    """A tenant's name for a network."""

    id: Annotated[str, Meta(description="`led_...`")]
    name: str
    network: Annotated[str, Meta(description="Name of the network.")]
    display_name: str | None
    description: str | None
    created_at: Instant
    updated_at: Instant


class StoredLedger(Ledger, frozen=True, kw_only=True):
    """A ledger after it was created or updated."""

    warnings: Warnings


class Ledgers(Schema, frozen=True, kw_only=True):
    """Ledgers of the tenant, oldest first."""

    data: list[Ledger]
    page: Page


LagStatus = Annotated[
    Literal["Known", "NothingTracked", "NotYetCollected", "HeadUnknown"],
    Meta(description="Why the lag beside it is null, or `Known` when it is there."),
]


class CollectedBlock(Schema, frozen=True, kw_only=True):
    """The newest collected block."""

    number: int
    time: Annotated[Instant | None, Meta(description="Null when the block was not stored.")]


class LedgerTotals(Schema, frozen=True, kw_only=True):
    """A ledger in numbers; activities and active wallets are those of the range."""

    tokens: int
    wallets: int
    tracked_tokens: Annotated[int, Meta(description="Tokens whose tracking is enabled.")]
    tracked_wallets: Annotated[int, Meta(description="Wallets whose tracking is enabled.")]
    activities: Annotated[int, Meta(description="Of tokens and of wallets; one movement may be seen from several.")]
    active_wallets: Annotated[
        int,
        Meta(
            description="Different addresses that sent or received in an activity of a token, or are a wallet of yours "
            "with an activity; adjustments do not count."
        ),
    ]
    newest_block: Annotated[CollectedBlock | None, Meta(description="Null while nothing is collected.")]
    head_block: Annotated[int | None, Meta(description="Newest block of the network's node; null when unknown.")]
    lag_seconds: Annotated[
        int | None, Meta(description="Time between the newest collected block and the node's newest block.")
    ]
    lag_status: LagStatus


class LedgerPoint(Schema, frozen=True, kw_only=True):
    """One interval, as far as it lies in the range."""

    date: IntervalStart
    from_: IntervalFrom = field(name="from")
    to: IntervalTo
    activities: int
    active_wallets: int
    token_activities: int
    wallet_activities: int
    is_complete: Annotated[
        bool,
        Meta(
            description="False while the interval is not over, when the range cuts it, or when something tracked is "
            "not covered through it: then zero does not mean that nothing happened."
        ),
    ]


class LedgerStatistics(Schema, frozen=True, kw_only=True):
    """What happened on a ledger in a range of time."""

    ledger: Annotated[str, Meta(description="Name of the ledger.")]
    network: Annotated[str, Meta(description="Name of the network.")]
    from_: Annotated[Instant | None, Meta(description="Start of the range; null while no block is known.")] = field(
        name="from"
    )
    to: Annotated[Instant | None, Meta(description="End of the range, not included.")]
    interval: Interval
    totals: LedgerTotals
    series: list[LedgerPoint]
    as_of: DataVersion
