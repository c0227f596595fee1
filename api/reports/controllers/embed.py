"""Routes of an open report besides its data: further tokens, and links from the index page to other reports."""

from datetime import UTC, datetime
from typing import get_args

from litestar import Controller

from api.examples import EXAMPLE_TOKEN_ID
from api.http.parameters import Injected
from api.http.route_specs import Example, RouteSpec
from api.http.routes import post
from api.reports import links
from api.reports.calls import EmbedCall
from api.reports.schemas.links import EmbedToken, IndexLink, IndexLinkCreate, Report
from api.reports.tokens import signer_of
from control.clock import utc_now
from control.errors import Invalid


class EmbedController(Controller):
    """Sessions of embedded reports."""

    path = "/embed"
    tags = ("Embedded reports",)

    @post("/token", RouteSpec(role=None, reports=get_args(Report), errors=(404,)))
    def renew_token(self, call: Injected[EmbedCall]) -> EmbedToken:
        """Get a further token for an open report.

        The new token is for the same report. You can get one until eight hours after the creation of the link. An
        expired token cannot be renewed.
        """
        with call.store.read() as session:
            links.check_claims(session, call.claims)
        token, claims = signer_of(call.services).go_on(call.claims, utc_now())
        return EmbedToken(
            token=token,
            expires_at=datetime.fromtimestamp(claims.exp, UTC),
            renewable_until=datetime.fromtimestamp(claims.sxp, UTC),
        )

    @post(
        "/index-links",
        RouteSpec(
            example=Example(body={"type": "cap-table", "id": EXAMPLE_TOKEN_ID}),
            role=None,
            reports=("index",),
            errors=(404,),
        ),
    )
    def link_from_index(
        self,
        call: Injected[EmbedCall],
        payload: Injected[IndexLinkCreate],
    ) -> IndexLink:
        """Link to a report from the index page.

        The report's session ends with that of the index page.
        """
        with call.store.read() as session:
            match payload.type:
                case "cap-table":
                    shown = links.cap_table(session, call.tenant_id, payload.id)
                case "cap-table-changes":
                    shown = links.cap_table_changes(session, call.tenant_id, payload.id, _earlier(payload))
                case "wallet-activity":
                    shown = links.wallet_activity(session, call.tenant_id, payload.id)
        return links.link_maker(call.services).go_on(call.claims, shown, "auto")


def _earlier(payload: IndexLinkCreate) -> str:
    if payload.from_ is None:
        raise Invalid("from", "missing", "from is missing; name the earlier moment, such as last-month-end")
    return payload.from_
