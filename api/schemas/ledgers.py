"""Networks and ledgers on the wire."""

from typing import Annotated, Literal

from msgspec import Meta

from api.schemas.common import DataVersion, Instant, Page, Schema

ProbedStatus = Literal["Healthy", "Unreachable", "Unhealthy", "WrongChain", "Disabled", "NotProbed"]


class Capabilities(Schema, frozen=True, kw_only=True):
    """What the network's node can do; null until it was probed."""

    internal_transfers: Annotated[bool | None, Meta(description="The node traces internal transfers of native value.")]
    archive: Annotated[bool | None, Meta(description="The node answers for old states.")]


class Network(Schema, frozen=True, kw_only=True):
    """A preconfigured network."""

    name: Annotated[str, Meta(description="Name in paths.", examples=["ethereum"])]
    display_name: str
    family: Annotated[str, Meta(description="Kind of network; decides the form of addresses.", examples=["evm"])]
    is_testnet: bool
    chain_id: int
    native_symbol: Annotated[str, Meta(description="Symbol of the native asset.", examples=["ETH"])]
    address_format: Annotated[str, Meta(description="What an address looks like, for people.")]
    capabilities: Capabilities
    status: Annotated[
        ProbedStatus,
        Meta(description="State of the network's node; `Disabled` without a node, `NotProbed` until it was looked at."),
    ]
    status_detail: Annotated[str | None, Meta(description="What is wrong and what to do.")]


class Networks(Schema, frozen=True, kw_only=True):
    """All networks, in the order of their definitions."""

    data: list[Network]
    page: Page
    as_of: DataVersion


class LedgerPut(Schema, frozen=True, kw_only=True):
    """A ledger to create or to change."""

    name: Annotated[
        str, Meta(description="Unique for the tenant: `[a-z0-9][a-z0-9-]{0,62}`.", examples=["ethereum-main"])
    ]
    display_name: Annotated[str | None, Meta(description="Name for people, up to 200 characters.")] = None
    description: Annotated[str | None, Meta(description="Up to 2000 characters.")] = None


class Ledger(Schema, frozen=True, kw_only=True):
    """A tenant's name for a network."""

    id: Annotated[str, Meta(description="`led_...`")]
    name: str
    network: Annotated[str, Meta(description="Name of the network.")]
    display_name: str | None
    description: str | None
    created_at: Instant
    updated_at: Instant


class Ledgers(Schema, frozen=True, kw_only=True):
    """Ledgers of the tenant, oldest first."""

    data: list[Ledger]
    page: Page
