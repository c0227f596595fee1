"""Structs of networks and ledgers."""

from typing import Annotated, Literal

from msgspec import Meta, field

from api.schema import DataVersion, Instant, Interval, IntervalFrom, IntervalStart, IntervalTo, Page, Schema, Warnings
from control.networks.families import FAMILIES

ProbedStatus = Literal[
    "Healthy",
    "Inconsistent",
    "Unreachable",
    "Unhealthy",
    "WrongChain",
    "ClockSkew",
    "ChainReset",
    "Disabled",
    "NotProbed",
    "Undefined",
]


class Capabilities(Schema, frozen=True, kw_only=True):
    """Capabilities of the network's node; null until it was probed."""

    internal_transfers: Annotated[bool | None, Meta(description="The node traces internal transfers of native value.")]
    archive: Annotated[
        bool | None, Meta(description="The node has old states (an archive node), so past balances can be read.")
    ]
    input_addresses: Annotated[
        bool | None,
        Meta(description="The node names the senders of every transaction. Without them, some fees are unknown too."),
    ]


class Network(Schema, frozen=True, kw_only=True):
    """A network that the service knows."""

    name: Annotated[str, Meta(description="Name in paths.", examples=["ethereum"])]
    display_name: str
    family: Annotated[
        str, Meta(description="Kind of network; it determines the form of addresses.", examples=list(FAMILIES))
    ]
    is_testnet: bool
    chain_id: Annotated[
        int | None,
        Meta(description="The chain id; null if the family of networks has none.", examples=[1]),
    ]
    native_symbol: Annotated[str, Meta(description="Symbol of the native asset.", examples=["ETH"])]
    address_format: Annotated[str, Meta(description="Form of an address, as text.")]
    capabilities: Capabilities
    status: Annotated[
        ProbedStatus,
        Meta(
            description="State of the network's node. `Disabled`: no node is configured. `NotProbed`: the node was not "
            "probed yet. `ChainReset`: the node serves a chain without blocks that were final for an hour. "
            "`Undefined`: ledgers of the tenant use the network, and the service no longer defines it."
        ),
    ]
    status_detail: Annotated[
        str | None,
        Meta(
            description="The problem and how to solve it, or the time until which history waits for the daily limit of "
            "requests."
        ),
    ]


class Networks(Schema, frozen=True, kw_only=True):
    """All networks, in the order of their definitions."""

    data: list[Network]
    page: Page
    as_of: DataVersion


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
    Meta(description="`Known` if the lag is not null; otherwise the reason why it is null."),
]


class CollectedBlock(Schema, frozen=True, kw_only=True):
    """The newest collected block."""

    number: int
    time: Annotated[Instant | None, Meta(description="Null when the block was not stored.")]


class LedgerTotals(Schema, frozen=True, kw_only=True):
    """Figures of a ledger; activities and active wallets are those of the range."""

    tokens: int
    wallets: int
    tracked_tokens: Annotated[int, Meta(description="Number of tokens with enabled tracking.")]
    tracked_wallets: Annotated[int, Meta(description="Number of wallets with enabled tracking.")]
    activities: Annotated[
        int, Meta(description="Activities of tokens and of wallets; one movement may count several times.")
    ]
    active_wallets: Annotated[
        int,
        Meta(
            description="Number of different addresses: senders and receivers in activities of tokens, and your "
            "wallets with an activity. Adjustments do not count."
        ),
    ]
    newest_block: Annotated[CollectedBlock | None, Meta(description="Null while nothing is collected.")]
    head_block: Annotated[int | None, Meta(description="Newest block of the network's node; null when unknown.")]
    lag_seconds: Annotated[
        int | None, Meta(description="Seconds between the newest collected block and the node's newest block.")
    ]
    lag_status: LagStatus


class LedgerPoint(Schema, frozen=True, kw_only=True):
    """The part of one interval inside the range."""

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
            description="False if the interval is not over, or if the range contains only a part of it. False too if "
            "a tracked token or wallet is not covered for all of it. Zero activities then do not mean that there "
            "were none."
        ),
    ]


class LedgerStatistics(Schema, frozen=True, kw_only=True):
    """Statistics of a ledger in a range of time."""

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
