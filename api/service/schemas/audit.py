"""Structs of audit events."""

from typing import Annotated, Any

from msgspec import Meta

from api.schema import Instant, Page, Schema
from control.audit import Action, ObjectKind


class AuditEvent(Schema, frozen=True, kw_only=True):
    """One write to the tenant's configuration."""

    id: Annotated[str, Meta(description="`aud_...`")]
    occurred_at: Instant
    actor: Annotated[str, Meta(description="Id of the API key, or `cli` for the command line of the service.")]
    action: Action
    object_kind: ObjectKind
    object_id: str
    before: Annotated[
        dict[str, Any] | None, Meta(description="Public fields before the change; null if the object was created.")
    ]
    after: Annotated[
        dict[str, Any] | None, Meta(description="Public fields after the change; null if the object was removed.")
    ]
    request_id: Annotated[str | None, Meta(description="`X-Request-Id` of the request; null for the command line.")]
    client_address: Annotated[
        str | None,
        Meta(description="IP address of the client; null for the command line, and for events of earlier releases."),
    ]


class AuditEvents(Schema, frozen=True, kw_only=True):
    """A page of audit events, newest first."""

    data: list[AuditEvent]
    page: Page
