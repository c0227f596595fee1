"""Health of the process, for operators and monitoring. It needs no key and reveals no tenant."""

from litestar import Controller
from litestar.datastructures import State

from api.http.calls import Services
from api.http.route_specs import RouteSpec
from api.http.routes import get
from api.service.schemas.health import Live, Ready
from control.errors import StoreUnavailable


class HealthController(Controller):
    """Liveness and readiness of the process."""

    path = "/health"
    tags = ("Operations",)

    @get("/live", RouteSpec(role=None), sync_to_thread=False)
    def read_live(self) -> Live:
        """Check that the process runs.

        It uses no other part of the service.
        """
        return Live(status="live")

    @get("/ready", RouteSpec(role=None, errors=(503,)))
    def read_ready(self, state: State) -> Ready:
        """Check that the service can answer requests.

        The control store is reachable and migrated, and a published version is open. If the last published version
        cannot be read, the newest readable one before it is used, and the status is `degraded`.
        """
        services: Services = state.services
        if not services.store.is_current():
            raise StoreUnavailable("the control store is not migrated to this version; run `ledgermart init`")
        found = services.serving.in_force()
        with services.serving.snapshot(found.version):
            return Ready(
                status="degraded" if found.trouble else "ready",
                detail=found.trouble,
                published_at=found.published_at,
            )
