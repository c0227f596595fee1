"""The OpenAPI document, the page that shows it (Swagger UI from npm), and the start page."""

import hashlib
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
from litestar import Request, Response, get
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from api.http.start_page import START_PAGE, START_POLICY
from control.resources import SWAGGER_UI

_ASSETS = {
    "swagger-ui.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
    "favicon-32x32.png": "image/png",
}

_PAGE = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Ledgermart API</title>
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="icon" type="image/png" href="/docs/favicon-32x32.png">
</head>
<body>
<div id="swagger-ui"></div>
<noscript>The document itself is at <a href="/openapi.json">/openapi.json</a>.</noscript>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
"""

_START = b"""window.ui = SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  displayRequestDuration: true,
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
});
"""

# Allow scripts, styles and requests only from this host. The bundle needs data: images and style attributes.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def documentation_routes(document: Callable[[], dict[str, Any]]) -> list[HTTPRouteHandler]:
    """Return the routes `/`, `/openapi.json` and `/docs`; the first request builds the document."""

    first, page, start = _Content(START_PAGE), _Content(_PAGE), _Content(_START)

    @cache
    def described() -> _Content:
        return _Content(msgspec.json.encode(document()))

    @cache
    def asset(name: str) -> _Content:
        return _Content((SWAGGER_UI / name).read_bytes())

    @get("/", sync_to_thread=False)
    def read_start(request: Request[Any, Any, Any]) -> Response[bytes]:
        return _cached(request, first, "text/html", {"Content-Security-Policy": START_POLICY})

    @get("/openapi.json", sync_to_thread=True)
    def read_json(request: Request[Any, Any, Any]) -> Response[bytes]:
        return _cached(request, described(), "application/json")

    @get("/docs", sync_to_thread=False)
    def read_page(request: Request[Any, Any, Any]) -> Response[bytes]:
        return _cached(request, page, "text/html", {"Content-Security-Policy": _POLICY})

    @get("/docs/{name:str}", sync_to_thread=True)
    def read_asset(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[bytes]:
        if name == "start.js":
            return _cached(request, start, "text/javascript")
        if name not in _ASSETS:
            raise NotFoundException
        return _cached(request, asset(name), _ASSETS[name])

    return [read_start, read_json, read_page, read_asset]


class _Content:
    """A body that does not change while the process runs, with its ETag."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def _cached(
    request: Request[Any, Any, Any], content: _Content, media_type: str, headers: dict[str, str] | None = None
) -> Response[bytes]:
    sent = {"ETag": content.etag, "Cache-Control": "no-cache", **(headers or {})}
    if request.headers.get("if-none-match") == content.etag:
        return Response(b"", status_code=304, media_type=media_type, headers=sent)
    return Response(content.body, media_type=media_type, headers=sent)
