"""Structs of the health checks."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from api.schema import Instant, Schema


class Live(Schema, frozen=True, kw_only=True):
    """The process answers."""

    status: Literal["live"]


class ShardState(Schema, frozen=True, kw_only=True):
    """Published versions of one shard on this node; versions are named by their times of publication."""

    shard: int
    published_at: Annotated[
        Instant | None, Meta(description="Publication of the version in use on this node; null if it has none yet.")
    ]
    newest_published_at: Annotated[Instant, Meta(description="Publication of the version in force.")]
    seconds_behind: Annotated[
        int,
        Meta(description="Seconds since a version was published that is newer than the one in use; 0 if none is."),
    ]
    trouble: Annotated[
        str | None, Meta(description="Why the version in force is not in use, or not known; null if all is well.")
    ]


class Ready(Schema, frozen=True, kw_only=True):
    """The control store is reachable and a published version is open."""

    status: Annotated[
        Literal["ready", "degraded"],
        Meta(description="`degraded`: requests are answered, but not from the last published version."),
    ]
    detail: Annotated[str | None, Meta(description="The reason of `degraded`; null when ready.")]
    published_at: Annotated[
        Instant, Meta(description="Publication of the version in use; of several shards, the earliest.")
    ]
    shards: (
        Annotated[
            list[ShardState],
            Meta(description="Each shard with a published version; only if this node fetches versions from a store."),
        ]
        | UnsetType
    ) = UNSET
