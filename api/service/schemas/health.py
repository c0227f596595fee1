"""Structs of the health checks."""

from typing import Annotated, Literal

from msgspec import Meta

from api.schema import Instant, Schema


class Live(Schema, frozen=True, kw_only=True):
    """The process answers."""

    status: Literal["live"]


class Ready(Schema, frozen=True, kw_only=True):
    """The control store is reachable and a published version is open."""

    status: Annotated[
        Literal["ready", "degraded"],
        Meta(description="`degraded`: requests are answered, but not from the last published version."),
    ]
    detail: Annotated[str | None, Meta(description="The reason of `degraded`; null when ready.")]
    published_at: Instant
