"""History requests of tokens and wallets: a past range is asked for, watched, and cancelled."""

from typing import Annotated, Any

from litestar import Controller, Response, delete, get, post
from litestar.di import NamedDependency
from litestar.params import PathParameter, SkipValidation
from sqlalchemy.orm import Session

from api.bodies import body_of
from api.calls import Call, Fetched
from api.operations import (
    EXAMPLE_TOKEN_ID,
    EXAMPLE_TOKEN_OPERATION_ID,
    EXAMPLE_WALLET_ID,
    EXAMPLE_WALLET_OPERATION_ID,
    Example,
    Operation,
)
from api.paging import Key
from api.parameters import Cursor, Limit, TokenId, WalletId
from api.reading.estimates import read_estimate
from api.reading.operations import to_history_operation
from api.reading.subjects import is_fungible
from api.schemas.operations import HistoryEstimate, HistoryOperation, HistoryOperations, HistoryRequest
from api.serving import Snapshot
from control import operations, tokens, wallets
from control.access import Role
from control.operations import OperationKind
from control.pages import After
from control.subjects import SubjectRow

_TAG = "History requests"
_REQUESTED = {
    202: "The request was stored; the pipeline takes it up in its next cycle.",
    200: "A dry run: what it would ask of the node. Nothing was stored.",
}
_CANCELLED = {202: "The request is asked to stop."}

OperationId = Annotated[str, PathParameter(name="operationId", description="Id of the request, `op_...`.")]


class TokenHistoryController(Controller):
    """History requests of a token."""

    path = "/v1/tokens/{tokenId:str}/history-requests"

    @post(
        "/",
        sync_to_thread=True,
        status_code=202,
        dependencies={"payload": body_of(HistoryRequest)},
        operation=Operation(
            answer=HistoryOperation,
            tag=_TAG,
            example=Example(path={"tokenId": EXAMPLE_TOKEN_ID}, body={"from": "creation", "to": "now"}, status=202),
            role=Role.ADMIN,
            statuses=_REQUESTED,
            errors=(404, 409),
            body=HistoryRequest,
            dry_answer=HistoryEstimate,
        ),
    )
    def request_token_history(
        self,
        call: NamedDependency[SkipValidation[Call]],
        token_id: TokenId,
        payload: NamedDependency[SkipValidation[HistoryRequest]],
    ) -> Response[Any]:
        """Ask for a token's history.

        A past range of the token is collected chunk by chunk, whatever its tracking status, and shows as it comes.
        Nothing is collected twice: requests may overlap one another and what is tracked. A gap is filled by asking for
        its blocks. With `dryRun`, what it would ask of the node is answered, and nothing is stored.
        """
        token = _token(call, token_id)
        with call.snapshot() as snapshot:
            fungible = is_fungible(snapshot, token)
        if payload.dry_run:
            return _estimate(call, token, payload, fungible)

        def work(session: Session) -> HistoryOperation:
            return to_history_operation(
                operations.request_history(
                    session,
                    call.principal,
                    tokens.get(session, call.tenant_id, token_id),
                    start=payload.from_,
                    end=payload.to,
                    native=payload.native,
                    is_fungible=fungible,
                )
            )

        return call.write_once(202, work, lambda identifier: f"/v1/tokens/{token_id}/history-requests/{identifier}")

    @get(
        "/",
        sync_to_thread=True,
        operation=Operation(
            answer=HistoryOperations,
            tag=_TAG,
            example=Example(path={"tokenId": EXAMPLE_TOKEN_ID}),
            row=HistoryOperation,
            errors=(404,),
            is_paged=True,
        ),
    )
    def list_token_history_requests(
        self, call: NamedDependency[SkipValidation[Call]], token_id: TokenId, limit: Limit = 50, cursor: Cursor = None
    ) -> Response[Any]:
        """List a token's history requests.

        Newest first, finished ones too.
        """
        return _list(call, _token(call, token_id), limit, cursor)

    @get(
        "/{operationId:str}",
        sync_to_thread=True,
        operation=Operation(
            answer=HistoryOperation,
            tag=_TAG,
            example=Example(path={"tokenId": EXAMPLE_TOKEN_ID, "operationId": EXAMPLE_TOKEN_OPERATION_ID}),
            errors=(404,),
        ),
    )
    def read_token_history_request(
        self, call: NamedDependency[SkipValidation[Call]], token_id: TokenId, operation_id: OperationId
    ) -> Response[Any]:
        """Read one history request of a token.

        With its progress as the pipeline last reported it.
        """
        return _read(call, _token(call, token_id), operation_id)

    @delete(
        "/{operationId:str}",
        sync_to_thread=True,
        status_code=202,
        operation=Operation(
            answer=HistoryOperation,
            tag=_TAG,
            example=Example(path={"tokenId": EXAMPLE_TOKEN_ID, "operationId": EXAMPLE_TOKEN_OPERATION_ID}, status=202),
            role=Role.ADMIN,
            statuses=_CANCELLED,
            errors=(404, 409),
        ),
    )
    def cancel_token_history_request(
        self, call: NamedDependency[SkipValidation[Call]], token_id: TokenId, operation_id: OperationId
    ) -> Response[Any]:
        """Cancel a history request of a token.

        It stops after the chunk under way; what was collected stays. A finished one is a conflict.
        """
        return _cancel(call, _token(call, token_id), operation_id)


class WalletHistoryController(Controller):
    """History requests of a wallet."""

    path = "/v1/wallets/{walletId:str}/history-requests"

    @post(
        "/",
        sync_to_thread=True,
        status_code=202,
        dependencies={"payload": body_of(HistoryRequest)},
        operation=Operation(
            answer=HistoryOperation,
            tag=_TAG,
            example=Example(
                path={"walletId": EXAMPLE_WALLET_ID},
                body={"from": "2026-01-01", "to": "2026-02-01T00:00:00Z", "native": "full"},
                status=202,
            ),
            role=Role.ADMIN,
            statuses=_REQUESTED,
            errors=(404, 409),
            body=HistoryRequest,
            dry_answer=HistoryEstimate,
        ),
    )
    def request_wallet_history(
        self,
        call: NamedDependency[SkipValidation[Call]],
        wallet_id: WalletId,
        payload: NamedDependency[SkipValidation[HistoryRequest]],
    ) -> Response[Any]:
        """Ask for a wallet's history.

        A past range of the wallet is collected chunk by chunk, whatever its tracking status, and shows as it comes:
        transfers of all tokens, and native value as `native` says. Nothing is collected twice: requests may overlap
        one another and what is tracked. A gap is filled by asking for its blocks. With `dryRun`, what it would ask of
        the node is answered, and nothing is stored.
        """
        wallet = _wallet(call, wallet_id)
        if payload.dry_run:
            return _estimate(call, wallet, payload)

        def work(session: Session) -> HistoryOperation:
            return to_history_operation(
                operations.request_history(
                    session,
                    call.principal,
                    wallets.get(session, call.tenant_id, wallet_id),
                    start=payload.from_,
                    end=payload.to,
                    native=payload.native,
                )
            )

        return call.write_once(202, work, lambda identifier: f"/v1/wallets/{wallet_id}/history-requests/{identifier}")

    @get(
        "/",
        sync_to_thread=True,
        operation=Operation(
            answer=HistoryOperations,
            tag=_TAG,
            example=Example(path={"walletId": EXAMPLE_WALLET_ID}),
            row=HistoryOperation,
            errors=(404,),
            is_paged=True,
        ),
    )
    def list_wallet_history_requests(
        self, call: NamedDependency[SkipValidation[Call]], wallet_id: WalletId, limit: Limit = 50, cursor: Cursor = None
    ) -> Response[Any]:
        """List a wallet's history requests.

        Newest first, finished ones too.
        """
        return _list(call, _wallet(call, wallet_id), limit, cursor)

    @get(
        "/{operationId:str}",
        sync_to_thread=True,
        operation=Operation(
            answer=HistoryOperation,
            tag=_TAG,
            example=Example(path={"walletId": EXAMPLE_WALLET_ID, "operationId": EXAMPLE_WALLET_OPERATION_ID}),
            errors=(404,),
        ),
    )
    def read_wallet_history_request(
        self, call: NamedDependency[SkipValidation[Call]], wallet_id: WalletId, operation_id: OperationId
    ) -> Response[Any]:
        """Read one history request of a wallet.

        With its progress as the pipeline last reported it.
        """
        return _read(call, _wallet(call, wallet_id), operation_id)

    @delete(
        "/{operationId:str}",
        sync_to_thread=True,
        status_code=202,
        operation=Operation(
            answer=HistoryOperation,
            tag=_TAG,
            example=Example(
                path={"walletId": EXAMPLE_WALLET_ID, "operationId": EXAMPLE_WALLET_OPERATION_ID}, status=202
            ),
            role=Role.ADMIN,
            statuses=_CANCELLED,
            errors=(404, 409),
        ),
    )
    def cancel_wallet_history_request(
        self, call: NamedDependency[SkipValidation[Call]], wallet_id: WalletId, operation_id: OperationId
    ) -> Response[Any]:
        """Cancel a history request of a wallet.

        It stops after the chunk under way; what was collected stays. A finished one is a conflict.
        """
        return _cancel(call, _wallet(call, wallet_id), operation_id)


def _token(call: Call, token_id: str) -> SubjectRow:
    with call.store.read() as session:
        return tokens.get(session, call.tenant_id, token_id)


def _wallet(call: Call, wallet_id: str) -> SubjectRow:
    with call.store.read() as session:
        return wallets.get(session, call.tenant_id, wallet_id)


def _estimate(call: Call, subject: SubjectRow, payload: HistoryRequest, fungible: bool | None = None) -> Response[Any]:
    first, last = operations.check_history(
        call.principal, subject, start=payload.from_, end=payload.to, native=payload.native, is_fungible=fungible
    )
    return call.written(read_estimate(call, subject, first, last, payload.native))


def _list(call: Call, subject: SubjectRow, limit: int, cursor: str | None) -> Response[Any]:
    asked = (call.tenant_id, OperationKind.HISTORY, subject.subject_key)

    def fetch(_: Snapshot | None, after: Key | None, count: int) -> Fetched[HistoryOperation]:
        with call.store.read() as session:
            position = After(str(after[0]), str(after[1])) if after else None
            page = operations.list_page(session, *asked, min(count, 1000), position)
        return Fetched(
            [to_history_operation(operation) for operation in page.rows],
            (page.after.value, page.after.id) if page.after else None,
        )

    position = call.position(cursor, tuple[str, str])
    if call.is_tabular:
        with call.store.read() as session:
            reported = operations.newest_report(session, *asked)
        return call.tabular(None, HistoryOperation, fetch, state=reported)
    fetched = fetch(None, position.key if position else None, limit)
    page, headers = call.page(None, fetched, limit)
    return call.answer(HistoryOperations(data=list(fetched.rows), page=page), headers)


def _read(call: Call, subject: SubjectRow, operation_id: str) -> Response[Any]:
    with call.store.read() as session:
        operation = operations.get(session, call.tenant_id, operation_id, OperationKind.HISTORY, subject.subject_key)
    return call.answer(to_history_operation(operation))


def _cancel(call: Call, subject: SubjectRow, operation_id: str) -> Response[Any]:
    with call.store.write() as session:
        operation = operations.get(session, call.tenant_id, operation_id, OperationKind.HISTORY, subject.subject_key)
        cancelled = operations.cancel(session, call.principal, operation)
    return call.written(to_history_operation(cancelled), 202)
