"""Route for the guest token of a report that Superset draws."""

from datetime import UTC, datetime

from litestar import Controller

from api.http.parameters import Injected
from api.http.route_specs import RouteSpec
from api.http.routes import post
from api.reports import superset
from api.reports.calls import EmbedCall
from api.reports.schemas.superset import GuestToken
from control import embedding, tokens, wallets
from control.clock import utc_now


class SupersetController(Controller):
    """Guest tokens of Superset."""

    path = "/embed"
    tags = ("Embedded reports",)

    @post("/superset-token", RouteSpec(role=None, reports=("cap-table", "wallet-activity"), errors=(404,)))
    def make_guest_token(self, call: Injected[EmbedCall]) -> GuestToken:
        """Get a guest token of Superset for an open report.

        It opens the report's dashboard for five minutes, limited to the report's tenant and its token or wallet.
        """
        settings = call.services.settings
        dashboard = superset.find_dashboard(settings.data_dir, call.report)
        with call.store.read() as session:
            if call.report == "cap-table":
                subject = tokens.get(session, call.tenant_id, call.params["tokenId"])
            else:
                subject = wallets.get(session, call.tenant_id, call.params["walletId"])
            origins = embedding.list_origins(session, call.tenant_id)
        signer = superset.GuestTokenSigner(superset.read_key(call.store), settings.superset_url, settings.public_origin)
        rules = superset.row_rules(call.tenant_id, dashboard, subject.subject_key, call.params)
        session_end = datetime.fromtimestamp(call.claims.sxp, UTC)
        return signer.sign(call.tenant_id, dashboard, rules, origins, utc_now(), session_end)
