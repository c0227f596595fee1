"""Attestations of tokens and wallets: a past moment is asked for, watched, cancelled; records are listed."""

from functools import partial
from typing import Annotated, Any

from litestar import Controller
from litestar.params import PathParameter
from sqlalchemy.orm import Session

from api.async_operations import Owned, cancel_operation, read_operation
from api.calls import Call, Tabular, Written
from api.lists import read_list
from api.operations import EXAMPLE_TOKEN_ATTESTATION_ID, EXAMPLE_WALLET_ATTESTATION_ID, Example, Operation
from api.parameters import Cursor, Injected, Limit
from api.reading.attestations import (
    check_moment,
    estimate,
    read_page,
    standing_blocks,
    to_attestation_operation,
)
from api.reading.subjects import is_fungible
from api.routes import delete, get, post
from api.schemas.attestations import (
    AttestationEstimate,
    AttestationOperation,
    AttestationRequest,
    TokenAttestation,
    TokenAttestations,
    WalletAttestation,
    WalletAttestations,
)
from api.schemas.common import Schema
from api.subjects import Subjects
from control import attestations
from control.access import Role
from control.operations import OperationKind
from control.subjects import Kind, SubjectRow

_REQUESTED = {
    202: "The attestation that was asked for, or the one of the moment that is under way or whose record stands.",
    200: "A dry run: what it would ask of the node. Nothing was stored.",
}
_CANCELLED = {202: "The attestation is asked to stop."}

AttestationId = Annotated[str, PathParameter(name="operationId", description="Id of the operation, `op_...`.")]


def attestation_controller(of: Subjects) -> type[Controller]:
    """Return the routes of attestations of tokens, or of wallets."""
    is_token = of.kind is Kind.TOKEN
    item: type[Any] = TokenAttestation if is_token else WalletAttestation
    items: type[Any] = TokenAttestations if is_token else WalletAttestations
    one = Example(path={"operationId": EXAMPLE_TOKEN_ATTESTATION_ID if is_token else EXAMPLE_WALLET_ATTESTATION_ID})

    class AttestationController(Controller):
        path = f"{of.one_path}/attestations"
        tags = ("Attestations",)
        dependencies = of.dependencies

        @post(
            "/",
            Operation(
                of=of.kind,
                example=Example(body={"asOf": "block:120"}),
                role=Role.ADMIN,
                statuses=_REQUESTED,
                errors=(409,),
            ),
        )
        def attest_subject(
            self,
            call: Injected[Call],
            subject: Injected[SubjectRow],
            payload: Injected[AttestationRequest],
        ) -> Written[AttestationOperation] | AttestationEstimate:
            """Attest a {subject} at a past moment.

            What no reading confirms is read from the chain at the last block before the moment's end: of a token the
            supply and the balance of every known holder, of a wallet the balance of every asset that it is known to
            have, or to have had. The moment must be covered; until its block is final, the operation is pending. With
            `dryRun`, what it would ask of the node is answered, and nothing is stored.
            """
            with call.snapshot() as snapshot:
                fungible = is_fungible(snapshot, subject) if is_token else None
                moment = attestations.check(call.principal, payload.as_of, is_fungible=fungible)
                state = check_moment(call, snapshot, subject, moment)
                if payload.dry_run:
                    return estimate(call, snapshot, subject, state)
                standing = standing_blocks(snapshot, subject)

            def work(session: Session) -> AttestationOperation:
                return to_attestation_operation(
                    attestations.request(
                        session,
                        call.principal,
                        subject,
                        as_of=moment.text,
                        stands=standing.__contains__,
                        is_fungible=fungible,
                    )
                )

            path = f"{of.path}/{subject.id}/attestations"
            return call.write_once(202, work, lambda identifier: f"{path}/{identifier}")

        @get("/", Operation(of=of.kind, answer=items, row=item))
        def list_subject_attestations(
            self,
            call: Injected[Call],
            subject: Injected[SubjectRow],
            limit: Limit = 50,
            cursor: Cursor = None,
        ) -> Schema | Tabular[Schema]:
            """List a {subject}'s attestations.

            What was attested, the newest block first, asked for or made where a period ended. A record is never
            changed; `superseded` says that something was learned since.
            """
            position = call.position(cursor, tuple[int, int])

            with call.snapshot(position) as snapshot:
                fetch = partial(read_page, subject)
                return read_list(call, items, item, fetch, limit, position, snapshot, subject=subject)

        @get("/{operationId:str}", Operation(of=of.kind, example=one))
        def read_subject_attestation(
            self,
            call: Injected[Call],
            subject: Injected[SubjectRow],
            operation_id: AttestationId,
        ) -> AttestationOperation:
            """Read how far an attestation of a {subject} is.

            With its progress as the pipeline last reported it.
            """
            return read_operation(call, _owned(subject), operation_id)

        @delete(
            "/{operationId:str}",
            Operation(of=of.kind, example=one, role=Role.ADMIN, statuses=_CANCELLED, errors=(409,)),
        )
        def cancel_subject_attestation(
            self,
            call: Injected[Call],
            subject: Injected[SubjectRow],
            operation_id: AttestationId,
        ) -> AttestationOperation:
            """Cancel an attestation of a {subject}.

            It stops after the part under way; what was read stays. A finished one is a conflict.
            """
            return cancel_operation(call, _owned(subject), operation_id)

    return AttestationController


def _owned(subject: SubjectRow) -> Owned[AttestationOperation]:
    return Owned(OperationKind.ATTESTATION, subject.subject_key, to_attestation_operation, subject)
