"""A proxy in front of a store of objects that spoils the answers about some keys."""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

import urllib3

from tests.waiting import PATIENCE_SECONDS


class Spoilt:
    """A reply in place of the store's.

    Attributes:
        status: of the answer.
        body: of the answer; None: the store's own.
        cut_after: number of bytes after which the connection ends; None: it stays open.
    """

    def __init__(self, status: int = 200, body: bytes | None = None, cut_after: int | None = None) -> None:
        self.status, self.body, self.cut_after = status, body, cut_after


class ObjectProxy:
    """Forwards GET and HEAD with all headers, so that signatures hold; a context manager.

    Attributes:
        spoil: returns what replaces the answer about a path; None: the store's answer.
        asked: paths of all requests so far.
    """

    def __init__(self, port: int) -> None:
        self.spoil: Callable[[str], Spoilt | None] = lambda path: None
        self.asked: list[str] = []
        self._pool = urllib3.HTTPConnectionPool("127.0.0.1", port, maxsize=8, retries=False, timeout=PATIENCE_SECONDS)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": self}))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._pool.close()

    def ask(self, method: str, path: str, headers: dict[str, str]) -> urllib3.BaseHTTPResponse:
        """Send a request to the store."""
        self.asked.append(path)
        return self._pool.request(method, path, headers=headers)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: ObjectProxy

    def do_GET(self) -> None:
        spoilt = self.proxy.spoil(self.path.partition("?")[0])
        answer = self.proxy.ask(self.command, self.path, dict(self.headers.items()))
        body, status = answer.data, answer.status
        if spoilt is not None:
            body, status = body if spoilt.body is None else spoilt.body, spoilt.status
        length = answer.headers.get("Content-Length") if self.command == "HEAD" else str(len(body))
        self.send_response(status)
        for name, value in answer.headers.items():
            if name.lower() not in ("content-length", "connection", "date", "server", "transfer-encoding"):
                self.send_header(name, value)
        self.send_header("Content-Length", length or "0")
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(body if spoilt is None else body[: spoilt.cut_after])
        if spoilt is not None and spoilt.cut_after is not None:
            self.close_connection = True

    do_HEAD = do_GET

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing: a test's output is its assertions."""
