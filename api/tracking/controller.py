"""Routes shared by tokens and wallets: detail, changes, removal, tracking, coverage."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from litestar import Controller

from api.engine.serving import Snapshot
from api.http.calls import Call
from api.http.parameters import Injected
from api.http.route_specs import Example, RouteSpec
from api.http.routes import delete, get, patch, put
from api.operations.estimates import to_tracking_history
from api.schema import Schema, SubjectCoverage
from api.subjects.coverage import read_history, to_subject_coverage
from api.subjects.finding import Subjects
from api.subjects.moments import View, read_view
from api.subjects.windows import to_tracking_status, to_windows
from api.tokens.reading import is_fungible, to_token
from api.tokens.schemas import Token, TokenTracking
from api.values.reading import CURRENCY
from api.wallets.reading import to_wallet
from api.wallets.schemas import Wallet, WalletTracking
from control import subjects, tokens, wallets
from control.access import Role
from control.subjects import Kind, SubjectRow, TokenPatch, WalletPatch
from control.tracking import TrackingPut, set_tracking


@dataclass(frozen=True, slots=True)
class _Forms:
    """The structs of tokens or of wallets, with the functions that fill and store them."""

    detail: type[Schema]
    to_detail: Callable[[Snapshot, View], Schema]
    patch: type[Schema]
    patch_example: dict[str, Any]
    update: Callable[..., SubjectRow]
    tracking: type[Schema]


_FORMS = {
    Kind.TOKEN: _Forms(
        Token, to_token, TokenPatch, {"name": "Digital dollar", "externalId": None}, tokens.update, TokenTracking
    ),
    Kind.WALLET: _Forms(
        Wallet, to_wallet, WalletPatch, {"name": "Treasury", "externalId": None}, wallets.update, WalletTracking
    ),
}


def subject_controller(of: Subjects) -> type[Controller]:
    """Return the controller of one token or one wallet."""
    forms = _FORMS[of.kind]
    tag = f"{of.kind.capitalize()}s"

    class SubjectController(Controller):
        path = of.one_path
        tags = (tag,)
        dependencies = of.dependencies

        @get("/", RouteSpec(of=of.kind, answer=forms.detail))
        def read_subject(self, call: Injected[Call], subject: Injected[SubjectRow]) -> Schema:
            """Read one {subject}.

            The answer has its tracking windows. For a token it also has the facts of its contract, and supply and
            number of holders at the newest covered block.
            """
            with call.store.read() as session:
                windows = subjects.windows(session, subject.subject_key)
                links = call.services.links_in_force(session, call.tenant_id)
            with call.snapshot() as snapshot:
                return forms.to_detail(snapshot, read_view(snapshot, subject, windows, links))

        @patch(
            "/",
            RouteSpec(
                of=of.kind,
                answer=forms.detail,
                example=Example(body=forms.patch_example),
                role=Role.OPERATOR,
                body=forms.patch,
            ),
        )
        def patch_subject(
            self,
            call: Injected[Call],
            subject: Injected[SubjectRow],
            payload: Injected[Any],
        ) -> Schema:
            """Change a {subject}.

            Changes name and external id, and the symbol of a token. A field that is left out stays the same; null
            deletes its value. Ledger and address are its identity and are fixed.
            """
            with call.snapshot() as snapshot:
                with call.store.write() as session:
                    changed = forms.update(session, call.principal, subject, payload)
                    windows = subjects.windows(session, changed.subject_key)
                    links = call.services.links_in_force(session, call.tenant_id)
                return forms.to_detail(snapshot, read_view(snapshot, changed, windows, links))

        @delete("/", RouteSpec(of=of.kind, role=Role.ADMIN, statuses={204: f"The {of.kind} is removed."}))
        def remove_subject(self, call: Injected[Call], subject: Injected[SubjectRow]) -> None:
            """Remove a {subject}.

            Tracking ends, history requests are cancelled, and the {subject} is not shown any more. If you add the same
            address again, you get a new {subject} without windows and history.
            """
            with call.store.write() as session:
                subjects.remove(session, call.principal, subject)

        @put(
            "/tracking",
            RouteSpec(
                of=of.kind, answer=forms.tracking, example=Example(body={"trackingStatus": "enabled"}), role=Role.ADMIN
            ),
        )
        def put_subject_tracking(
            self,
            call: Injected[Call],
            subject: Injected[SubjectRow],
            payload: Injected[TrackingPut],
        ) -> Schema:
            """Enable or disable the tracking of a {subject}.

            Enabling opens a window from now on; disabling closes it. Only the blocks of windows and history requests
            are collected. A request for the state that tracking already has changes nothing. A contract that is not a
            fungible token cannot be enabled.

            With `history`, earlier blocks are collected too: window and history request are both stored, or neither is.
            With `dryRun`, `historyEstimate` has the estimated requests to the node, and nothing changes.
            """
            fungible = None
            if of.kind is Kind.TOKEN:
                with call.snapshot() as snapshot:
                    fungible = is_fungible(snapshot, subject)
            with call.store.write() as session:
                tracking = set_tracking(
                    session,
                    call.principal,
                    subject,
                    payload,
                    is_fungible=fungible,
                )
            requested, estimate = to_tracking_history(call, tracking)
            # Tokens have a currency once they were tracked.
            priced = {"priced_in": CURRENCY if tracking.windows else None} if of.kind is Kind.TOKEN else {}
            return forms.tracking(
                id=tracking.subject.id,
                tracking_status=to_tracking_status(tracking.subject),
                windows=to_windows(tracking.windows),
                history_request=requested,
                history_estimate=estimate,
                **priced,
            )

        @get("/coverage", RouteSpec(of=of.kind))
        def read_subject_coverage(self, call: Injected[Call], subject: Injected[SubjectRow]) -> SubjectCoverage:
            """Read the coverage of a {subject}.

            Its tracking windows and history requests, the ranges that are collected for them, and every gap with its
            reason.
            """
            with call.store.read() as session:
                windows, history = subjects.windows(session, subject.subject_key), read_history(session, subject)
            with call.snapshot() as snapshot:
                return to_subject_coverage(snapshot, read_view(snapshot, subject, windows), history)

    return SubjectController
