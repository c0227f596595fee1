"""Audit events: changes to a tenant's configuration, with author and time."""

from typing import Annotated, cast

from litestar import Controller
from litestar.params import QueryParameter

from api.http.calls import Call, Tabular
from api.http.lists import STORED, read_list, stored
from api.http.parameters import Cursor, From, Injected, Limit, To, read_range
from api.http.route_specs import Example, RouteSpec
from api.http.routes import get
from api.service.schemas.audit import AuditEvent, AuditEvents
from control import audit
from control.access import Role
from control.audit import Action, AuditFilters, ObjectKind
from control.inputs import FILTER
from control.models import AuditEvent as AuditEventModel

ActionFilter = Annotated[Action | None, QueryParameter(description="Kind of change.")]
ObjectIdFilter = Annotated[
    str | None,
    QueryParameter(
        name="objectId",
        description="Id of the object, such as `tok_...`; also of a removed object.",
        schema_extra=FILTER,
    ),
]


class AuditController(Controller):
    """A tenant's audit events."""

    path = "/v1/audit-events"
    tags = ("Audit",)

    @get("/", RouteSpec(example=Example(query={"from": "2026-01-01", "limit": "10"}), role=Role.ADMIN))
    def list_audit_events(
        self,
        call: Injected[Call],
        start: From = None,
        end: To = None,
        action: ActionFilter = None,
        object_id: ObjectIdFilter = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> AuditEvents | Tabular[AuditEvent]:
        """List the changes to the configuration.

        Every write to the tenant's configuration, newest first, with the object's public fields before and after it.
        Removed objects are included.
        """
        times = read_range(start, end)
        filters = AuditFilters(times.start, times.end, action, object_id)

        fetch = stored(
            call,
            lambda session, count, after: audit.list_page(session, call.tenant_id, filters, count, after),
            lambda rows, *_: [_to_event(event) for event in rows],
        )

        def newest() -> object:
            with call.store.read() as session:
                return audit.newest_id(session, call.tenant_id)

        position = call.position(cursor, STORED)
        return read_list(call, AuditEvents, AuditEvent, fetch, limit, position, state=newest)


def _to_event(event: AuditEventModel) -> AuditEvent:
    return AuditEvent(
        id=event.id,
        occurred_at=event.occurred_at,
        actor=event.actor,
        action=cast("Action", event.action),
        object_kind=cast("ObjectKind", event.object_kind),
        object_id=event.object_id,
        before=event.before,
        after=event.after,
        request_id=event.request_id,
        client_address=event.client_address,
    )
