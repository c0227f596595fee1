"""The API on a real socket, and a customer's site on another origin that embeds its reports.

The API listens on 127.0.0.1, and the site is on `localhost` with another port, so neither may read the other's
documents. The site requests links server-side, like customers do, so no page contains the API key.
"""

import html
import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from api.reports.schemas.links import Report
from tests.api.reported import link_unchecked
from tests.api.world import World
from tests.e2e.client import ApiClient
from tests.e2e.serving import serving

_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Customer portal</title>
<link rel="stylesheet" href="/portal.css"><script src="/portal.js"></script></head>
<body><header>Customer portal</header><main>{frame}</main></body>
</html>"""

_STYLE = """
body { margin: 0; font: 16px sans-serif } header { padding: 12px 20px; font-weight: bold }
iframe { display: block; width: 100%; border: 0 }
"""

# The script of docs/reference/reports.md: listen before the frame exists, and reply to an expired token. The API's
# snippet adjusts the height.
_SCRIPT = """
const frame = () => document.querySelector('iframe');
const reports = () => new URL(frame().src).origin;
window.messages = [];
addEventListener('message', async (event) => {
  if (event.origin !== reports() || event.source !== frame().contentWindow) return;
  window.messages.push(event.data);
  if (event.data.type === 'report:token-expired' && window.handsOver) await handOver();
});

async function handOver() {
  const token = await (await fetch(`/token${location.pathname}${location.search}`)).text();
  frame().contentWindow.postMessage({ type: 'report:token', token }, reports());
}
"""


class ServerError(Exception):
    """A server of the tests did not start; the message names it."""


@dataclass(frozen=True)
class Api:
    """The application with its server, in a thread of this process.

    Attributes:
        world: data and keys; later publications are served, too.
        url: where it listens.
        log: every line of all loggers in that time.
    """

    world: World
    url: str
    log: list[str]

    def client(self, who: str = "admin") -> ApiClient:
        """Return a client with the key of one of the world's callers."""
        return ApiClient(self.url, self.world.keys[who])

    def link_unchecked(self, report: Report, **params: str) -> str:
        """Return a link without checking its moments: on an open page, a moment may no longer be covered."""
        world = self.world
        link = urlsplit(link_unchecked(world.settings, world.store, world.keys["viewer"], report, **params))
        return f"{self.url}{link.path}?{link.query}#{link.fragment}"


@contextmanager
def serving_api(world: World) -> Iterator[Api]:
    """Serve a world."""
    log: list[str] = []
    handler, loggers = _Listening(log), [logging.getLogger(name) for name in ("ledgermart", "_granian")]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    with serving(world.settings) as url:
        yield Api(world, url, log)
    for logger in loggers:
        logger.removeHandler(handler)


class Portal:
    """The customer's site; a context manager.

    `/cap-table?tokenId=...` embeds that report by the API's own snippet; `/token/cap-table?...` returns the token of a
    new link; `/framed?url=...` frames any address.

    Args:
        api: source of the links.
    """

    def __init__(self, api: Api) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(api.client("viewer")))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.origin = f"http://localhost:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def page(self, report: str, **parameters: str) -> str:
        """Return the address of the page that embeds a report."""
        return f"{self.origin}/{report}?{urlencode(parameters)}"


def token_of(url: str) -> str:
    """Return the token in the fragment of a report's address."""
    name, _, token = urlsplit(url).fragment.partition("=")
    if name != "t":
        raise ServerError(f"{url} has no token in its fragment")
    return token


def allow(api: Api, *origins: str) -> None:
    """Allow only these origins to frame the tenant's reports."""
    with api.client() as client:
        client.put("/v1/reports/embed-origins", {"embedOrigins": list(origins)})


def _handler(client: ApiClient) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            target = urlsplit(self.path)
            answers: dict[str, Callable[[], tuple[str, str]]] = {
                "/portal.js": lambda: ("text/javascript", _SCRIPT),
                "/portal.css": lambda: ("text/css", _STYLE),
                "/favicon.ico": lambda: ("image/x-icon", ""),
            }
            kind, body = answers.get(target.path, lambda: self._embedding(target.path, dict(parse_qsl(target.query))))()
            content = body.encode()
            self.send_response(200)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _embedding(self, path: str, query: dict[str, str]) -> tuple[str, str]:
            if path == "/framed":
                return "text/html", _PAGE.format(frame=f'<iframe src="{html.escape(query["url"])}"></iframe>')
            report = path.removeprefix("/token")
            link: dict[str, Any] = client.get(f"/v1/reports{report}", **query)
            if path.startswith("/token"):
                return "text/plain", token_of(link["reportUrl"])
            return "text/html", _PAGE.format(frame=link["iframe"])

        def log_message(self, format: str, *arguments: object) -> None:
            """Write no access log to the tests' output."""

    return Handler


class _Listening(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__(logging.DEBUG)
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())
        if record.exc_info:
            self._lines.append(json.dumps(str(record.exc_info[1])))
