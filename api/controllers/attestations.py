"""Attestations of tokens and wallets: a past moment is asked for, watched, cancelled; records are listed."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from litestar import Controller, Response, delete, get, post
from litestar.di import NamedDependency
from litestar.params import PathParameter, SkipValidation
from sqlalchemy.orm import Session

from api.bodies import body_of
from api.calls import Call, Fetched
from api.operations import (
    EXAMPLE_TOKEN_ATTESTATION_ID,
    EXAMPLE_TOKEN_ID,
    EXAMPLE_WALLET_ATTESTATION_ID,
    EXAMPLE_WALLET_ID,
    Example,
    Operation,
)
from api.paging import Key
from api.parameters import Cursor, Limit, TokenId, WalletId
from api.reading.attestations import (
    check_moment,
    estimate,
    standing_blocks,
    to_attestation_operation,
    to_token_attestation,
    to_wallet_attestation,
)
from api.reading.subjects import is_fungible
from api.rows import AttestationRow
from api.schemas.attestations import (
    AttestationEstimate,
    AttestationOperation,
    AttestationRequest,
    TokenAttestation,
    TokenAttestations,
    WalletAttestation,
    WalletAttestations,
)
from api.schemas.common import DataVersion, Page, Schema
from api.serving import Snapshot
from control import attestations, operations, tokens, wallets
from control.access import Role
from control.operations import OperationKind
from control.subjects import Kind, SubjectRow

_TAG = "Attestations"
_REQUESTED = {
    202: "The attestation that was asked for, or the one of the moment that is under way or whose record stands.",
    200: "A dry run: what it would ask of the node. Nothing was stored.",
}
_CANCELLED = {202: "The attestation is asked to stop."}
# Before the first row.
_START = (2**63 - 1, 0)

AttestationId = Annotated[str, PathParameter(name="operationId", description="Id of the operation, `op_...`.")]
Item = TypeVar("Item", bound=Schema)


class TokenAttestationController(Controller):
    """Attestations of a token."""

    path = "/v1/tokens/{tokenId:str}/attestations"

    @post(
        "/",
        sync_to_thread=True,
        status_code=202,
        dependencies={"payload": body_of(AttestationRequest)},
        operation=Operation(
            answer=AttestationOperation,
            tag=_TAG,
            example=Example(path={"tokenId": EXAMPLE_TOKEN_ID}, body={"asOf": "block:120"}, status=202),
            role=Role.ADMIN,
            statuses=_REQUESTED,
            errors=(404, 409),
            body=AttestationRequest,
            dry_answer=AttestationEstimate,
        ),
    )
    def attest_token(
        self,
        call: NamedDependency[SkipValidation[Call]],
        token_id: TokenId,
        payload: NamedDependency[SkipValidation[AttestationRequest]],
    ) -> Response[Any]:
        """Attest a token at a past moment.

        The supply, and the balance of every known holder that no reading confirms, are read from the chain at the last
        block before the moment's end. The moment must be covered; until its block is final, the operation is pending.
        With `dryRun`, what it would ask of the node is answered, and nothing is stored.
        """
        with call.store.read() as session:
            token = tokens.get(session, call.tenant_id, token_id)
        return _attest(call, token, payload)

    @get(
        "/",
        sync_to_thread=True,
        operation=Operation(
            answer=TokenAttestations,
            tag=_TAG,
            example=Example(path={"tokenId": EXAMPLE_TOKEN_ID}),
            row=TokenAttestation,
            errors=(404, 410),
            is_paged=True,
        ),
    )
    def list_token_attestations(
        self, call: NamedDependency[SkipValidation[Call]], token_id: TokenId, limit: Limit = 50, cursor: Cursor = None
    ) -> Response[Any]:
        """List a token's attestations.

        What was attested, the newest block first, asked for or made where a period ended. A record is never changed;
        `superseded` says that something was learned since.
        """
        with call.store.read() as session:
            token = tokens.get(session, call.tenant_id, token_id)

        def to_page(rows: list[TokenAttestation], page: Page, as_of: DataVersion) -> Schema:
            return TokenAttestations(data=rows, page=page, as_of=as_of)

        return _list(call, token, TokenAttestation, to_token_attestation, to_page, limit, cursor)

    @get(
        "/{operationId:str}",
        sync_to_thread=True,
        operation=Operation(
            answer=AttestationOperation,
            tag=_TAG,
            example=Example(path={"tokenId": EXAMPLE_TOKEN_ID, "operationId": EXAMPLE_TOKEN_ATTESTATION_ID}),
            errors=(404,),
        ),
    )
    def read_token_attestation(
        self, call: NamedDependency[SkipValidation[Call]], token_id: TokenId, operation_id: AttestationId
    ) -> Response[Any]:
        """Read how far an attestation of a token is.

        With its progress as the pipeline last reported it.
        """
        with call.store.read() as session:
            token = tokens.get(session, call.tenant_id, token_id)
        return _read(call, token, operation_id)

    @delete(
        "/{operationId:str}",
        sync_to_thread=True,
        status_code=202,
        operation=Operation(
            answer=AttestationOperation,
            tag=_TAG,
            example=Example(
                path={"tokenId": EXAMPLE_TOKEN_ID, "operationId": EXAMPLE_TOKEN_ATTESTATION_ID}, status=202
            ),
            role=Role.ADMIN,
            statuses=_CANCELLED,
            errors=(404, 409),
        ),
    )
    def cancel_token_attestation(
        self, call: NamedDependency[SkipValidation[Call]], token_id: TokenId, operation_id: AttestationId
    ) -> Response[Any]:
        """Cancel an attestation of a token.

        It stops after the part under way; what was read stays. A finished one is a conflict.
        """
        with call.store.read() as session:
            token = tokens.get(session, call.tenant_id, token_id)
        return _cancel(call, token, operation_id)


class WalletAttestationController(Controller):
    """Attestations of a wallet."""

    path = "/v1/wallets/{walletId:str}/attestations"

    @post(
        "/",
        sync_to_thread=True,
        status_code=202,
        dependencies={"payload": body_of(AttestationRequest)},
        operation=Operation(
            answer=AttestationOperation,
            tag=_TAG,
            example=Example(path={"walletId": EXAMPLE_WALLET_ID}, body={"asOf": "block:120"}, status=202),
            role=Role.ADMIN,
            statuses=_REQUESTED,
            errors=(404, 409),
            body=AttestationRequest,
            dry_answer=AttestationEstimate,
        ),
    )
    def attest_wallet(
        self,
        call: NamedDependency[SkipValidation[Call]],
        wallet_id: WalletId,
        payload: NamedDependency[SkipValidation[AttestationRequest]],
    ) -> Response[Any]:
        """Attest a wallet at a past moment.

        The balance of every asset that the wallet is known to have, or to have had, and that no reading confirms, is
        read from the chain at the last block before the moment's end. The moment must be covered; until its block is
        final, the operation is pending. With `dryRun`, what it would ask of the node is answered, and nothing is
        stored.
        """
        with call.store.read() as session:
            wallet = wallets.get(session, call.tenant_id, wallet_id)
        return _attest(call, wallet, payload)

    @get(
        "/",
        sync_to_thread=True,
        operation=Operation(
            answer=WalletAttestations,
            tag=_TAG,
            example=Example(path={"walletId": EXAMPLE_WALLET_ID}),
            row=WalletAttestation,
            errors=(404, 410),
            is_paged=True,
        ),
    )
    def list_wallet_attestations(
        self, call: NamedDependency[SkipValidation[Call]], wallet_id: WalletId, limit: Limit = 50, cursor: Cursor = None
    ) -> Response[Any]:
        """List a wallet's attestations.

        What was attested, the newest block first, asked for or made where a period ended. A record is never changed;
        `superseded` says that something was learned since.
        """
        with call.store.read() as session:
            wallet = wallets.get(session, call.tenant_id, wallet_id)

        def to_page(rows: list[WalletAttestation], page: Page, as_of: DataVersion) -> Schema:
            return WalletAttestations(data=rows, page=page, as_of=as_of)

        return _list(call, wallet, WalletAttestation, to_wallet_attestation, to_page, limit, cursor)

    @get(
        "/{operationId:str}",
        sync_to_thread=True,
        operation=Operation(
            answer=AttestationOperation,
            tag=_TAG,
            example=Example(path={"walletId": EXAMPLE_WALLET_ID, "operationId": EXAMPLE_WALLET_ATTESTATION_ID}),
            errors=(404,),
        ),
    )
    def read_wallet_attestation(
        self, call: NamedDependency[SkipValidation[Call]], wallet_id: WalletId, operation_id: AttestationId
    ) -> Response[Any]:
        """Read how far an attestation of a wallet is.

        With its progress as the pipeline last reported it.
        """
        with call.store.read() as session:
            wallet = wallets.get(session, call.tenant_id, wallet_id)
        return _read(call, wallet, operation_id)

    @delete(
        "/{operationId:str}",
        sync_to_thread=True,
        status_code=202,
        operation=Operation(
            answer=AttestationOperation,
            tag=_TAG,
            example=Example(
                path={"walletId": EXAMPLE_WALLET_ID, "operationId": EXAMPLE_WALLET_ATTESTATION_ID}, status=202
            ),
            role=Role.ADMIN,
            statuses=_CANCELLED,
            errors=(404, 409),
        ),
    )
    def cancel_wallet_attestation(
        self, call: NamedDependency[SkipValidation[Call]], wallet_id: WalletId, operation_id: AttestationId
    ) -> Response[Any]:
        """Cancel an attestation of a wallet.

        It stops after the part under way; what was read stays. A finished one is a conflict.
        """
        with call.store.read() as session:
            wallet = wallets.get(session, call.tenant_id, wallet_id)
        return _cancel(call, wallet, operation_id)


def _attest(call: Call, subject: SubjectRow, payload: AttestationRequest) -> Response[Any]:
    is_token = subject.kind is Kind.TOKEN
    with call.snapshot() as snapshot:
        fungible = is_fungible(snapshot, subject) if is_token else None
        moment = attestations.check(call.principal, payload.as_of, is_fungible=fungible)
        state = check_moment(call, snapshot, subject, moment)
        if payload.dry_run:
            return call.written(estimate(call, snapshot, subject, state))
        standing = standing_blocks(snapshot, subject)

    def work(session: Session) -> AttestationOperation:
        rules = tokens if is_token else wallets
        return to_attestation_operation(
            attestations.request(
                session,
                call.principal,
                rules.get(session, call.tenant_id, subject.id),
                as_of=payload.as_of,
                stands=standing.__contains__,
                is_fungible=fungible,
            )
        )

    path = f"/v1/{subject.kind}s/{subject.id}/attestations"
    return call.write_once(202, work, lambda identifier: f"{path}/{identifier}")


def _list(
    call: Call,
    subject: SubjectRow,
    item_type: type[Item],
    to_item: Callable[[AttestationRow], Item],
    to_page: Callable[[list[Item], Page, DataVersion], Schema],
    limit: int,
    cursor: str | None,
) -> Response[Any]:
    position = call.position(cursor, tuple[int, int])

    def fetch(snapshot: Snapshot, after: Key | None, count: int) -> Fetched[Item]:
        before_block, before_number = after or _START
        rows = snapshot.rows(
            "attestations",
            AttestationRow,
            subject_key=subject.subject_key,
            tenant_id=call.tenant_id,
            before_block=before_block,
            before_number=before_number,
            row_count=count + 1,
        )
        kept = rows[:count]
        last = (kept[-1].block_number, kept[-1].attestation_number) if len(rows) > count else None
        return Fetched([to_item(row) for row in kept], last)

    with call.snapshot(position) as snapshot:
        as_of = DataVersion(data_version=snapshot.data_version(call.tenant_id))
        if call.is_tabular:
            return call.tabular(snapshot, item_type, fetch, as_of)
        fetched = fetch(snapshot, position.key if position else None, limit)
        page, headers = call.page(snapshot, fetched, limit)
    return call.answer(to_page(list(fetched.rows), page, as_of), headers)


def _read(call: Call, subject: SubjectRow, operation_id: str) -> Response[Any]:
    with call.store.read() as session:
        operation = operations.get(
            session, call.tenant_id, operation_id, OperationKind.ATTESTATION, subject.subject_key
        )
    return call.answer(to_attestation_operation(operation))


def _cancel(call: Call, subject: SubjectRow, operation_id: str) -> Response[Any]:
    with call.store.write() as session:
        operation = operations.get(
            session, call.tenant_id, operation_id, OperationKind.ATTESTATION, subject.subject_key
        )
        cancelled = operations.cancel(session, call.principal, operation)
    return call.written(to_attestation_operation(cancelled), 202)
