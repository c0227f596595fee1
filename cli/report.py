"""`ledgermart report`: links to reports, as the API returns them."""

from rich.console import Console

from api.reports import links
from api.reports.schemas.links import ReportLink, Theme
from api.reports.tokens import TokenSigner
from control import access, service_secrets
from control.settings import Settings
from control.store import open_store


def make_link(settings: Settings, key: str, token_id: str | None, wallet_id: str | None, theme: Theme) -> ReportLink:
    """Return a link to a token's cap table, to a wallet's activity, or else to the list of all reports.

    Args:
        settings: the address of the API and the provider of the reports.
        key: an API key of the tenant.
        token_id: id of a token.
        wallet_id: id of a wallet; not together with a token.
        theme: colours.

    Raises:
        Unauthenticated: the key is not valid.
        NotFound: the tenant has no such token or wallet.
        StoreUnavailable: the control store cannot be used.
    """
    store = open_store(settings)
    try:
        with store.read() as session:
            principal = access.authenticate(session, key)
            if token_id is not None:
                shown = links.cap_table(session, principal.tenant_id, token_id)
            elif wallet_id is not None:
                shown = links.wallet_activity(session, principal.tenant_id, wallet_id)
            else:
                shown = links.index()
            signer = TokenSigner(service_secrets.get(session, service_secrets.EMBED_SIGNING_KEY))
        if access.is_touch_due(principal):
            with store.write() as session:
                access.touch(session, principal.key_id)
        return links.LinkMaker(settings, store, signer).open(principal, shown, theme)
    finally:
        store.close()


def print_link(link: ReportLink, settings: Settings, console: Console) -> None:
    """Print a link as text."""
    # Without markup and folding, which would break the address.
    console.print(link.report_url, markup=False, soft_wrap=True)
    console.print(
        f"\nOpen it until {link.expires_at:%H:%M:%S} UTC; the page then works for eight hours. "
        "Whoever has the link sees the report.\n"
        f"The API answers at {settings.public_origin} while `ledgermart up` or `ledgermart api` runs.",
        markup=False,
    )
