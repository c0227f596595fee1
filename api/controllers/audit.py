"""The audit: who changed what of a tenant's configuration."""

from typing import Annotated, Any, cast

from litestar import Controller, Response, get
from litestar.di import NamedDependency
from litestar.params import QueryParameter, SkipValidation

from api.calls import Call, Fetched
from api.operations import Example, Operation
from api.paging import Key
from api.parameters import Cursor, From, Limit, To, read_range
from api.schemas.audit import AuditEvent, AuditEvents
from api.serving import Snapshot
from control import audit
from control.access import Role
from control.audit import Action, AuditFilters, ObjectKind
from control.models import AuditEvent as AuditEventModel
from control.pages import After

_TAG = "Audit"

ActionFilter = Annotated[Action | None, QueryParameter(description="What was done.")]
ObjectIdFilter = Annotated[
    str | None, QueryParameter(name="objectId", description="Id of the object, such as `tok_...`; removed ones too.")
]


class AuditController(Controller):
    """A tenant's audit events."""

    path = "/v1/audit-events"

    @get(
        "/",
        sync_to_thread=True,
        operation=Operation(
            answer=AuditEvents,
            tag=_TAG,
            example=Example(query={"from": "2026-01-01", "limit": "10"}),
            role=Role.ADMIN,
            row=AuditEvent,
            is_paged=True,
        ),
    )
    def list_audit_events(
        self,
        call: NamedDependency[SkipValidation[Call]],
        start: From = None,
        end: To = None,
        action: ActionFilter = None,
        object_id: ObjectIdFilter = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Response[Any]:
        """List who changed what.

        Every write to the tenant's configuration, newest first, with the object's public fields before and after it;
        also of objects that have been removed since.
        """
        times = read_range(start, end)
        filters = AuditFilters(times.start, times.end, action, object_id)

        def fetch(_: Snapshot | None, after: Key | None, count: int) -> Fetched[AuditEvent]:
            with call.store.read() as session:
                position = After(str(after[0]), str(after[1])) if after else None
                page = audit.list_page(session, call.tenant_id, filters, min(count, 1000), position)
            return Fetched(
                [_to_event(event) for event in page.rows], (page.after.value, page.after.id) if page.after else None
            )

        position = call.position(cursor, tuple[str, str])
        if call.is_tabular:
            with call.store.read() as session:
                newest = audit.newest_id(session, call.tenant_id)
            return call.tabular(None, AuditEvent, fetch, state=newest)
        fetched = fetch(None, position.key if position else None, limit)
        page, headers = call.page(None, fetched, limit)
        return call.answer(AuditEvents(data=list(fetched.rows), page=page), headers)


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
    )
