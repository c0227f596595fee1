"""History requests of tokens and wallets: request a past range, watch it, and cancel it."""

from typing import Annotated, Any

from litestar import Controller
from litestar.params import PathParameter
from sqlalchemy.orm import Session

from api.examples import EXAMPLE_TOKEN_OPERATION_ID, EXAMPLE_WALLET_OPERATION_ID
from api.http.calls import Call, Tabular, Written
from api.http.parameters import Cursor, Injected, Limit
from api.http.route_specs import Example, RouteSpec
from api.http.routes import delete, get, post
from api.operations.estimates import read_estimate
from api.operations.reading import to_history_operation
from api.operations.schemas import HistoryEstimate, HistoryOperation, HistoryOperations
from api.operations.waiting import Owned, cancel_operation, list_operations, read_operation
from api.subjects.finding import Subjects
from api.tokens.reading import is_fungible
from control import operations
from control.access import Role
from control.inputs import OPERATION_ID
from control.operations import HistoryRequest, OperationKind
from control.subjects import Kind, SubjectRow

_REQUESTED = {
    202: "The request was stored; the pipeline starts it in its next cycle.",
    200: "A dry run: the estimated requests to the node. Nothing was stored.",
}
_CANCELLED = {202: "The history request will stop."}

OperationId = Annotated[
    str,
    PathParameter(name="operationId", description="Id of the request, `op_...`.", schema_extra=OPERATION_ID),
]


def history_controller(of: Subjects) -> type[Controller]:
    """Return the controller of history requests of tokens or of wallets."""
    is_token = of.kind is Kind.TOKEN
    asked: dict[str, Any] = {"from": "creation", "to": "now"}
    if not is_token:
        asked = {"from": "2026-01-01", "to": "2026-02-01T00:00:00Z", "native": "full"}
    one = Example(path={"operationId": EXAMPLE_TOKEN_OPERATION_ID if is_token else EXAMPLE_WALLET_OPERATION_ID})

    class HistoryController(Controller):
        path = f"{of.one_path}/history-requests"
        tags = ("History requests",)
        dependencies = of.dependencies

        @post(
            "/", RouteSpec(of=of.kind, example=Example(body=asked), role=Role.ADMIN, statuses=_REQUESTED, errors=(409,))
        )
        def request_subject_history(
            self,
            call: Injected[Call],
            subject: Injected[SubjectRow],
            payload: Injected[HistoryRequest],
        ) -> Written[HistoryOperation] | HistoryEstimate:
            """Request a {subject}'s history.

            The pipeline collects a past range of the {subject} chunk by chunk, with tracking enabled or disabled. Each
            chunk is visible as soon as it is collected. For a wallet it collects the transfers of all tokens, and
            native value according to `native`. Nothing is collected twice: requests may overlap with each other and
            with tracking. To fill a gap, request its blocks. `dryRun` returns an estimate of the requests to the node
            and stores nothing.
            """
            fungible = None
            if is_token:
                with call.snapshot() as snapshot:
                    fungible = is_fungible(snapshot, subject)
            if payload.dry_run:
                first, last = operations.check_history(
                    call.principal,
                    subject,
                    payload,
                    is_fungible=fungible,
                )
                return read_estimate(call, subject, first, last, payload.native)

            def work(session: Session) -> HistoryOperation:
                return to_history_operation(
                    operations.request_history(
                        session,
                        call.principal,
                        subject,
                        payload,
                        is_fungible=fungible,
                    )
                )

            path = f"{of.path}/{subject.id}/history-requests"
            return call.write_once(202, work, lambda identifier: f"{path}/{identifier}")

        @get("/", RouteSpec(of=of.kind))
        def list_subject_history_requests(
            self,
            call: Injected[Call],
            subject: Injected[SubjectRow],
            limit: Limit = 50,
            cursor: Cursor = None,
        ) -> HistoryOperations | Tabular[HistoryOperation]:
            """List a {subject}'s history requests.

            Newest first, finished requests included.
            """
            return list_operations(call, _owned(subject), HistoryOperations, HistoryOperation, limit, cursor)

        @get("/{operationId:str}", RouteSpec(of=of.kind, example=one))
        def read_subject_history_request(
            self,
            call: Injected[Call],
            subject: Injected[SubjectRow],
            operation_id: OperationId,
        ) -> HistoryOperation:
            """Read one history request of a {subject}.

            The progress is the one that the pipeline last reported.
            """
            return read_operation(call, _owned(subject), operation_id)

        @delete(
            "/{operationId:str}",
            RouteSpec(of=of.kind, example=one, role=Role.ADMIN, statuses=_CANCELLED, errors=(409,)),
        )
        def cancel_subject_history_request(
            self,
            call: Injected[Call],
            subject: Injected[SubjectRow],
            operation_id: OperationId,
        ) -> HistoryOperation:
            """Cancel a history request of a {subject}.

            The request stops after its current chunk; collected chunks stay. A request that has finished
            returns 409.
            """
            return cancel_operation(call, _owned(subject), operation_id)

    return HistoryController


def _owned(subject: SubjectRow) -> Owned[HistoryOperation]:
    return Owned(OperationKind.HISTORY, subject.subject_key, to_history_operation, subject)
