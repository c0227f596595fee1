"""Routes for links to reports, and for the sites that may embed them."""

from typing import Annotated, Any

from litestar import Controller, Response
from litestar.params import QueryParameter
from sqlalchemy.orm import Session

from api.engine.serving import Snapshot
from api.examples import EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from api.http import media_types
from api.http.calls import NO_STORE, Call, Written
from api.http.parameters import AsOfMoment, From, FromMoment, Injected, To, ToMoment, read_moments
from api.http.route_specs import Example, RouteSpec
from api.http.routes import get, post, put
from api.reports import links
from api.reports.links import Shown
from api.reports.schemas.links import EmbedOrigins, ReportLink, Revocation, Theme
from api.subjects.finding import find
from api.subjects.moments import View, read_view, resolve_of_token
from api.tokens.cap_table_changes import resolve_both
from control import embedding
from control.access import Role
from control.inputs import TOKEN_ID, WALLET_ID
from control.subjects import Kind

_STATUSES = {200: "The link.", 303: "A redirect to the report, if `Accept` asks for HTML."}

ReportTheme = Annotated[Theme, QueryParameter(name="theme", description="Colours; `auto` follows the reader's system.")]
ReportTokenId = Annotated[
    str, QueryParameter(name="tokenId", description="Id of the token, `tok_...`.", schema_extra=TOKEN_ID)
]
ReportWalletId = Annotated[
    str, QueryParameter(name="walletId", description="Id of the wallet, `wal_...`.", schema_extra=WALLET_ID)
]


class ReportController(Controller):
    """A tenant's reports."""

    path = "/v1/reports"
    tags = ("Reports",)

    @get(
        "/",
        RouteSpec(example=Example(query={"theme": "dark"}), statuses=_STATUSES, answers_as=media_types.JSON_OR_HTML),
    )
    def link_index(self, call: Injected[Call], theme: ReportTheme = "auto") -> ReportLink | Response[Any]:
        """Link to the list of the tenant's reports.

        The page opens every report of the tenant. The link is valid for ten minutes, the opened page for eight hours.
        """
        return _link(call, links.index(), theme)

    @get(
        "/cap-table",
        RouteSpec(
            example=Example(query={"tokenId": EXAMPLE_TOKEN_ID}),
            statuses=_STATUSES,
            errors=(404, 409),
            answers_as=media_types.JSON_OR_HTML,
        ),
    )
    def link_cap_table(
        self,
        call: Injected[Call],
        token_id: ReportTokenId,
        as_of: AsOfMoment = None,
        theme: ReportTheme = "auto",
    ) -> ReportLink | Response[Any]:
        """Link to the cap table report of a token.

        The link works in a plain iframe on the sites of `embed-origins`. The link is valid for ten minutes, the opened
        page for eight hours. A moment that is not covered returns 409, as in the cap table itself.
        """
        with call.store.read() as session:
            shown = links.cap_table(session, call.tenant_id, token_id, as_of)
        if moment := call.moment(as_of):
            with call.snapshot() as snapshot:
                resolve_of_token(snapshot, _view(call, snapshot, token_id), moment)
        return _link(call, shown, theme)

    @get(
        "/cap-table-changes",
        RouteSpec(
            example=Example(query={"tokenId": EXAMPLE_TOKEN_ID, "from": "block:260"}),
            statuses=_STATUSES,
            errors=(404, 409),
            answers_as=media_types.JSON_OR_HTML,
        ),
    )
    def link_cap_table_changes(
        self,
        call: Injected[Call],
        token_id: ReportTokenId,
        start: FromMoment,
        end: ToMoment = None,
        theme: ReportTheme = "auto",
    ) -> ReportLink | Response[Any]:
        """Link to the report of the changes between two cap tables of a token.

        The link works in a plain iframe on the sites of `embed-origins`. The link is valid for ten minutes, the opened
        page for eight hours. A moment that is not covered returns 409, as in the changes themselves.
        """
        with call.store.read() as session:
            shown = links.cap_table_changes(session, call.tenant_id, token_id, start, end)
        with call.snapshot() as snapshot:
            resolve_both(snapshot, _view(call, snapshot, token_id), *read_moments(start, end, call.now))
        return _link(call, shown, theme)

    @get(
        "/wallet-activity",
        RouteSpec(
            example=Example(query={"walletId": EXAMPLE_WALLET_ID, "from": "2026-02-01", "theme": "light"}),
            statuses=_STATUSES,
            errors=(404,),
            answers_as=media_types.JSON_OR_HTML,
        ),
    )
    def link_wallet_activity(
        self,
        call: Injected[Call],
        wallet_id: ReportWalletId,
        start: From = None,
        end: To = None,
        theme: ReportTheme = "auto",
    ) -> ReportLink | Response[Any]:
        """Link to the activity report of a wallet.

        The link works in a plain iframe on the sites of `embed-origins`. The link is valid for ten minutes, the opened
        page for eight hours.
        """
        with call.store.read() as session:
            shown = links.wallet_activity(session, call.tenant_id, wallet_id, start, end)
        return _link(call, shown, theme)

    @get("/embed-origins", RouteSpec(role=Role.ADMIN))
    def read_embed_origins(self, call: Injected[Call]) -> EmbedOrigins:
        """Read the sites that may embed the tenant's reports.

        If there are none, only pages of this service may embed the reports.
        """
        with call.store.read() as session:
            return EmbedOrigins(embed_origins=embedding.list_origins(session, call.tenant_id))

    @put(
        "/embed-origins",
        RouteSpec(
            example=Example(body={"embedOrigins": ["https://portal.example", "https://intranet.example:8443"]}),
            role=Role.ADMIN,
        ),
    )
    def put_embed_origins(self, call: Injected[Call], payload: Injected[EmbedOrigins]) -> EmbedOrigins:
        """Replace the sites that may embed the tenant's reports.

        A site is scheme, host and port, without path or wildcard. Pages that are already open continue to work.
        """
        with call.store.write() as session:
            origins = embedding.set_origins(session, call.principal, payload.embed_origins)
        return EmbedOrigins(embed_origins=origins)

    @post(
        "/revocations",
        RouteSpec(role=Role.ADMIN, statuses={201: "All earlier links and tokens are invalid, and open pages stop."}),
    )
    def revoke_reports(self, call: Injected[Call]) -> Written[Revocation]:
        """End every link to the tenant's reports.

        All earlier links, tokens and open pages stop at once. New links work.
        """

        def work(session: Session) -> Revocation:
            return Revocation(embed_id=embedding.revoke(session, call.principal))

        return call.write_once(201, work, "/v1/reports")


def _view(call: Call, snapshot: Snapshot, token_id: str) -> View:
    subject, windows = find(call, Kind.TOKEN, token_id)
    return read_view(snapshot, subject, windows)


def _link(call: Call, shown: Shown, theme: Theme) -> ReportLink | Response[Any]:
    """Return the link, or redirect to it if the client accepts HTML; neither response is cacheable."""
    link = links.link_maker(call.services).open(call.principal, shown, theme)
    if call.media_type == media_types.HTML:
        headers = {"Location": link.report_url, **NO_STORE}
        return Response(b"", status_code=303, media_type=media_types.HTML, headers=headers)
    return link
