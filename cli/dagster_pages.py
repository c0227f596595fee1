"""Dagster's web pages: read-only by default, and only for browsers of this machine.

`ledgermart up` starts this module in place of `dagster-webserver`, which answers any host name, and GraphQL by GET.
"""

from urllib.parse import urlsplit

import dagster as dg
import uvicorn
from dagster._core.workspace.context import WorkspaceProcessContext, WorkspaceRequestContext
from dagster._core.workspace.load_target import WorkspaceFileTarget
from dagster_webserver.version import __version__
from dagster_webserver.webserver import DagsterWebserver
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from control.resources import WORKSPACE
from control.settings import load_settings

_HOST = "127.0.0.1"
_HOST_NAMES = [_HOST, "localhost"]
# Those of Dagster's own command: time for a statement in milliseconds, age and number of connections, polling.
_STATEMENT_MILLISECONDS = 15_000
_CONNECTION_SECONDS = 3_600
_MOST_CONNECTIONS = 20
_POLL_MILLISECONDS = 2_000


class OwnPagesOnly:
    """Middleware that refuses requests that a page of another site can make a browser send.

    A browser sends the `Origin` of the page with them, and can send JSON across sites only with the server's consent.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        refused = self._refused(scope) if scope["type"] in ("http", "websocket") else None
        await (refused or self._app)(scope, receive, send)

    def _refused(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != headers.get("host"):
            return PlainTextResponse("requests of other sites are refused", 403)
        if scope["type"] == "websocket":
            return None
        if scope["path"].rstrip("/") == "/graphql" and scope["method"] != "POST":
            return PlainTextResponse("GraphQL is answered by POST only", 405, {"Allow": "POST"})
        if (
            scope["method"] == "POST"
            and headers.get("content-type", "").partition(";")[0].strip() != "application/json"
        ):
            return PlainTextResponse("send Content-Type: application/json", 415)
        return None


class DagsterPages(DagsterWebserver[WorkspaceProcessContext, WorkspaceRequestContext]):
    """Dagster's web server, which answers names and pages of this machine only."""

    def build_middleware(self) -> list[Middleware]:
        """Check host name and origin before anything else."""
        return [
            Middleware(TrustedHostMiddleware, allowed_hosts=_HOST_NAMES, www_redirect=False),
            Middleware(OwnPagesOnly),
            *super().build_middleware(),
        ]


def main() -> None:
    """Serve the pages until stopped."""
    settings = load_settings()
    with dg.DagsterInstance.get() as instance:
        instance.optimize_for_webserver(_STATEMENT_MILLISECONDS, _CONNECTION_SECONDS, _MOST_CONNECTIONS)
        with WorkspaceProcessContext(
            instance,
            version=__version__,
            read_only=not settings.dagster_writes,
            workspace_load_target=WorkspaceFileTarget([str(WORKSPACE)]),
        ) as context:
            pages = DagsterPages(context, live_data_poll_rate=_POLL_MILLISECONDS)
            uvicorn.run(pages.create_asgi_app(), host=_HOST, port=settings.dagster_port, log_level="warning")


if __name__ == "__main__":
    main()
