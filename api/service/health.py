"""Health of the process, for operators and monitoring. It needs no key and reveals no tenant."""

from collections.abc import Sequence

from litestar import Controller
from litestar.datastructures import State

from api.engine import shards as engine
from api.engine.serving import InForce, not_published
from api.http.calls import Services
from api.http.route_specs import RouteSpec
from api.http.routes import get
from api.service.schemas.health import Live, Ready, ShardState
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
        cannot be read, the newest readable one before it is used, and the status is `degraded`. It is `degraded` too
        if this node cannot fetch the last version of a shard from the store of versions.
        """
        services: Services = state.services
        if not services.store.is_current():
            raise StoreUnavailable("the control store is not migrated to this version; run `ledgermart init`")
        shards = services.shards.states()
        if shards is not None:
            return _read_shards(services, shards)
        found = _open(services, 0)
        return Ready(
            status="degraded" if found.trouble else "ready",
            detail=found.trouble,
            published_at=found.published_at,
        )


def _open(services: Services, shard: int) -> InForce:
    """Open the version in use; ApiError (503) if there is none."""
    serving = services.shards.of(shard)
    found = serving.in_force()
    with serving.snapshot(found.version):
        return found


def _read_shards(services: Services, shards: Sequence[engine.ShardState]) -> Ready:
    in_use = [_open(services, state.shard) for state in shards if state.in_use]
    if not in_use:
        raise not_published("; ".join(_troubles(shards)) or None)
    troubles = _troubles(shards)
    return Ready(
        status="degraded" if troubles else "ready",
        detail="; ".join(troubles) or None,
        published_at=min(found.published_at for found in in_use),
        shards=[
            ShardState(
                shard=state.shard,
                published_at=state.in_use.published_at if state.in_use else None,
                newest_published_at=state.published_at,
                seconds_behind=state.seconds_behind,
                trouble=state.trouble,
            )
            for state in shards
        ],
    )


def _troubles(shards: Sequence[engine.ShardState]) -> list[str]:
    return [f"shard {state.shard}: {state.trouble}" for state in shards if state.trouble]
