"""Quotas of a tenant, and their usage."""

from litestar import Controller

from api.http.calls import Call
from api.http.parameters import Injected
from api.http.route_specs import RouteSpec
from api.http.routes import get
from api.service.schemas.quotas import Quota, Quotas
from control import quotas


class QuotaController(Controller):
    """A tenant's quotas; the administrator of the service sets them."""

    path = "/v1/quotas"
    tags = ("Quotas",)

    @get("/", RouteSpec())
    def list_quotas(self, call: Injected[Call]) -> Quotas:
        """List your quotas.

        Each has its limit, what you use of it, and the setting with which the administrator changes it.
        """
        with call.store.read() as session:
            found = quotas.read(session, call.tenant_id)
        return Quotas(
            data=[Quota(quota=one.name, used=one.used, limit=one.limit, setting=one.setting) for one in found]
        )
