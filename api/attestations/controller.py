"""Attestations of tokens and wallets: request, watch and cancel them, and list the records."""

from functools import partial
from typing import Annotated, Any

from litestar import Controller
from litestar.params import PathParameter
from sqlalchemy.orm import Session

from api.attestations.reading import check_moment, estimate, read_page, standing_blocks, to_attestation_operation
from api.attestations.schemas import (
    AttestationEstimate,
    AttestationOperation,
    AttestationRequest,
    TokenAttestation,
    TokenAttestations,
    WalletAttestation,
    WalletAttestations,
)
from api.examples import EXAMPLE_TOKEN_ATTESTATION_ID, EXAMPLE_WALLET_ATTESTATION_ID
from api.http.calls import Call, Tabular, Written
from api.http.lists import read_list
from api.http.parameters import Cursor, Injected, Limit
from api.http.route_specs import Example, RouteSpec
from api.http.routes import delete, get, post
from api.operations.waiting import Owned, cancel_operation, read_operation
from api.schema import Schema
from api.subjects.finding import Subjects
from api.tokens.reading import is_fungible
from control import attestations
from control.access import Role
from control.inputs import OPERATION_ID
from control.operations import OperationKind
from control.subjects import Kind, SubjectRow

_REQUESTED = {
    202: "The requested attestation, or the moment's existing one, if it is unfinished or its record is still valid.",
    200: "A dry run: the estimated requests to the node. Nothing was stored.",
}
_CANCELLED = {202: "The attestation will stop."}

AttestationId = Annotated[
    str,
    PathParameter(name="operationId", description="Id of the operation, `op_...`.", schema_extra=OPERATION_ID),
]


def attestation_controller(of: Subjects) -> type[Controller]:
    """Return the controller of attestations of tokens or of wallets."""
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
            RouteSpec(
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

            Reads from the chain all balances that no reading confirms, at the last block before the moment's end. For a
            token, these are the supply and the balance of every known holder. For a wallet, they are the balances of
            all assets that it is known to have or to have had. The moment must be covered. Until its block is final,
            the operation is pending. `dryRun` returns an estimate of the requests to the node and stores nothing.
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

        @get("/", RouteSpec(of=of.kind, answer=items, row=item))
        def list_subject_attestations(
            self,
            call: Injected[Call],
            subject: Injected[SubjectRow],
            limit: Limit = 50,
            cursor: Cursor = None,
        ) -> Schema | Tabular[Schema]:
            """List a {subject}'s attestations.

            All attestations, requested or made automatically at the end of a period, newest block first. A record is
            never changed; `superseded` is true if there is a later finding that it does not contain.
            """
            position = call.position(cursor, tuple[int, int])

            with call.snapshot(position) as snapshot:
                fetch = partial(read_page, subject)
                return read_list(call, items, item, fetch, limit, position, snapshot, subject=subject)

        @get("/{operationId:str}", RouteSpec(of=of.kind, example=one))
        def read_subject_attestation(
            self,
            call: Injected[Call],
            subject: Injected[SubjectRow],
            operation_id: AttestationId,
        ) -> AttestationOperation:
            """Read the progress of an attestation of a {subject}.

            The progress is the one that the pipeline last reported.
            """
            return read_operation(call, _owned(subject), operation_id)

        @delete(
            "/{operationId:str}",
            RouteSpec(of=of.kind, example=one, role=Role.ADMIN, statuses=_CANCELLED, errors=(409,)),
        )
        def cancel_subject_attestation(
            self,
            call: Injected[Call],
            subject: Injected[SubjectRow],
            operation_id: AttestationId,
        ) -> AttestationOperation:
            """Cancel an attestation of a {subject}.

            The attestation stops after its current part; readings that are done stay. An attestation that has
            finished returns 409.
            """
            return cancel_operation(call, _owned(subject), operation_id)

    return AttestationController


def _owned(subject: SubjectRow) -> Owned[AttestationOperation]:
    return Owned(OperationKind.ATTESTATION, subject.subject_key, to_attestation_operation, subject)
