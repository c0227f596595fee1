"""Health of the process, for whoever runs it; needs no key and reveals no tenant."""

import msgspec
from litestar import Controller, Response, get
from litestar.datastructures import State

from api import media_types
from api.calls import Services
from api.operations import Example, Operation
from api.schemas.common import Schema
from api.schemas.health import Live, Ready
from control.errors import StoreUnavailable

_TAG = "Operations"


class HealthController(Controller):
    """Whether the process lives, and whether it can answer."""

    path = "/health"

    @get("/live", sync_to_thread=False, operation=Operation(answer=Live, tag=_TAG, example=Example(), role=None))
    def read_live(self) -> Response[bytes]:
        """Say that the process lives.

        Touches nothing else.
        """
        return _no_store(Live(status="live"))

    @get(
        "/ready",
        sync_to_thread=True,
        operation=Operation(answer=Ready, tag=_TAG, example=Example(), role=None, errors=(503,)),
    )
    def read_ready(self, state: State) -> Response[bytes]:
        """Say whether requests can be answered.

        The control store is reachable and migrated, and a published version is open. Where the one published last
        cannot be read, the newest before it that can answers, and the status is `degraded`.
        """
        services: Services = state.services
        if not services.store.is_current():
            raise StoreUnavailable("the control store is not migrated to this version; run `ledgermart init`")
        found = services.serving.in_force()
        with services.serving.snapshot(found.version):
            return _no_store(
                Ready(
                    status="degraded" if found.trouble else "ready",
                    detail=found.trouble,
                    published_at=found.published_at,
                )
            )


def _no_store(body: Schema) -> Response[bytes]:
    return Response(msgspec.json.encode(body), media_type=media_types.JSON, headers={"Cache-Control": "no-store"})
