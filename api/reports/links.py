"""Links to reports: check the parameters of a report, then sign a token for exactly this report into a link.

`api.reports.tokens` defines the content and lifetime of tokens.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape

from sqlalchemy.orm import Session

from api.errors import invalid_parameter
from api.http.calls import Services
from api.http.parameters import read_moment, read_moments, read_range
from api.reports.schemas.links import IndexLink, Report, ReportLink, Theme
from api.reports.tokens import Claims, TokenSigner, signer_of
from control import embedding, tokens, wallets
from control.access import Principal
from control.clock import utc_now
from control.settings import ReportsProvider, Settings
from control.store import ControlStore

# The page runs scripts, reads data from its own origin, saves files by a form, prints, and opens the block explorer.
_SANDBOX = (
    "allow-scripts allow-same-origin allow-downloads allow-forms "
    "allow-modals allow-popups allow-popups-to-escape-sandbox"
)
# Sets the height of each report's frame to that of its content. It is the same for every link, so that a site's policy
# can allow it by hash. It precedes the frame, because a report sends its height only once.
_HEIGHT_SCRIPT = """<script>
addEventListener("message", ({ source, origin, data }) => {
  const frame = [...document.querySelectorAll("iframe")].find((each) => each.contentWindow === source);
  if (!frame || origin !== new URL(frame.src).origin || data?.type !== "report:height") return;
  frame.style.height = `${data.height}px`;
});
</script>
"""


@dataclass(frozen=True, slots=True)
class Shown:
    """An existing report with checked parameters; `title` is the text for screen readers."""

    report: Report
    title: str
    params: dict[str, str] = field(default_factory=dict)


def index() -> Shown:
    """Return the index page, which lists a tenant's reports."""
    return Shown("index", "Reports")


def cap_table(session: Session, tenant_id: str, token_id: str, as_of: str | None = None) -> Shown:
    """Return the cap table report of a token, at a moment in the forms of the API; None is the newest block.

    Raises:
        NotFound: the tenant has no such token.
        Invalid: `asOf` is malformed.
        ApiError: 422, `asOf` is beyond the calendar.
    """
    token = tokens.get(session, tenant_id, token_id)
    read_moment(as_of, utc_now())
    return Shown("cap-table", f"Cap table of {token.symbol}", _given(tokenId=token_id, asOf=as_of))


def cap_table_changes(session: Session, tenant_id: str, token_id: str, start: str, end: str | None = None) -> Shown:
    """Return the report of changes between two cap tables of a token, at moments in the forms of the API.

    Raises:
        NotFound: the tenant has no such token.
        Invalid: `from` or `to` is malformed.
        ApiError: 422, `from` is the newest block, or a moment is beyond the calendar.
    """
    token = tokens.get(session, tenant_id, token_id)
    read_moments(start, end, utc_now())
    title = f"Changes in the cap table of {token.symbol}"
    return Shown("cap-table-changes", title, _given(**{"tokenId": token_id, "from": start, "to": end}))


def wallet_activity(
    session: Session, tenant_id: str, wallet_id: str, start: str | None = None, end: str | None = None
) -> Shown:
    """Return the activity report of a wallet, for a range in the forms of the API.

    Raises:
        NotFound: the tenant has no such wallet.
        Invalid: `from` or `to` is malformed.
        ApiError: 422, the range is empty.
    """
    wallet = wallets.get(session, tenant_id, wallet_id)
    read_range(start, end)
    title = f"Activity of wallet {wallet.name or wallet.presented_address}"
    return Shown("wallet-activity", title, _given(**{"walletId": wallet_id, "from": start, "to": end}))


def check_claims(session: Session, claims: Claims) -> None:
    """Check that the subject of an embed token still exists.

    Raises:
        NotFound: the token or wallet was removed.
    """
    if claims.report in ("cap-table", "cap-table-changes"):
        tokens.get(session, claims.tenant, claims.params["tokenId"])
    elif claims.report == "wallet-activity":
        wallets.get(session, claims.tenant, claims.params["walletId"])


def drawn_by(report: str, provider: ReportsProvider) -> ReportsProvider:
    """Return the provider that draws a report: the configured one, or the builtin one if Superset has no dashboard."""
    return provider if report in ("cap-table", "wallet-activity") else "builtin"


@dataclass(frozen=True, slots=True)
class LinkMaker:
    """Maker of links. It writes to `store` only for the first link of a tenant."""

    settings: Settings
    store: ControlStore
    signer: TokenSigner

    def open(self, principal: Principal, shown: Shown, theme: Theme, now: datetime | None = None) -> ReportLink:
        """Return a link that begins a session; the session also ends if the principal's key is revoked.

        Raises:
            ApiError: 422, the provider cannot show the report at that moment.
        """
        provider = self.provider_of(shown)
        tenant_id, key_id = principal.tenant_id, principal.key_id
        embed_id = self._embed_id(tenant_id)
        token, claims = self.signer.open_session(
            tenant_id, shown.report, shown.params, embed_id, key_id, now or utc_now()
        )
        url = self._url(claims, token, theme)
        return ReportLink(
            type=shown.report,
            provider=provider,
            report_url=url,
            expires_at=datetime.fromtimestamp(claims.exp, UTC),
            iframe=_iframe(url, shown.title),
        )

    def go_on(self, claims: Claims, shown: Shown, theme: Theme, now: datetime | None = None) -> IndexLink:
        """Return a link to another report in the same session.

        Raises:
            ApiError: 401 `token-expired`, the session has ended.
        """
        token, made = self.signer.go_on(claims, now or utc_now(), shown.report, shown.params)
        return IndexLink(report_url=self._url(made, token, theme), expires_at=datetime.fromtimestamp(made.exp, UTC))

    def provider_of(self, shown: Shown) -> ReportsProvider:
        """Return the provider that draws a report.

        Raises:
            ApiError: 422, the report has a past moment, and Superset shows only the present cap table.
        """
        provider = drawn_by(shown.report, self.settings.reports_provider)
        if provider == "superset" and "asOf" in shown.params:
            detail = "leave asOf out: Superset's dashboards show the present cap table"
            raise invalid_parameter("asOf", "not-supported", detail)
        return provider

    def _embed_id(self, tenant_id: str) -> str:
        with self.store.read() as session:
            found = embedding.present_id(session, tenant_id)
        if found is None:
            with self.store.write() as session:
                found = embedding.make_id(session, tenant_id)
        return found

    def _url(self, claims: Claims, token: str, theme: Theme) -> str:
        return f"{self.settings.public_origin}/embed/{claims.report}/{claims.embed}?theme={theme}#t={token}"


def link_maker(services: Services) -> LinkMaker:
    """Return the link maker of this service."""
    return LinkMaker(services.settings, services.store, signer_of(services))


def _given(**params: str | None) -> dict[str, str]:
    return {name: value for name, value in params.items() if value is not None}


def _iframe(url: str, title: str) -> str:
    return _HEIGHT_SCRIPT + (
        f'<iframe src="{escape(url)}" title="{escape(title)}" sandbox="{_SANDBOX}" '
        'referrerpolicy="no-referrer" frameborder="0" width="100%" height="900"></iframe>'
    )
