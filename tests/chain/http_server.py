"""A small threaded HTTP server on loopback, the base class of stand-in nodes and of proxies.

It handles sockets and framing; subclasses provide the answers.
"""

import socket
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from tests.chain.process import free_port


@dataclass(frozen=True)
class Reply:
    """A reply of the server: sent after `delay_seconds` or when the server stops, and cut off after `cut_after` bytes.

    A reply that is cut off closes the connection. `stream` replaces all other fields: it yields the
    bytes of the whole reply, including headers, until the client disconnects or the server stops.
    """

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_seconds: float = 0.0
    cut_after: int | None = None
    stream: Callable[[], Iterator[bytes]] | None = None


class LoopbackServer(ABC):
    """Answers requests on 127.0.0.1; a context manager. The port stays the same when stopped and started again."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None
        self.stopping = threading.Event()

    @abstractmethod
    def answer(self, body: bytes) -> Reply:
        """Answer one POST request; called from many threads concurrently."""

    def answer_get(self, target: str) -> Reply:
        """Answer one GET request with path and query; called from many threads concurrently."""
        return Reply(status=404)

    def start(self) -> None:
        """Listen and serve from a thread."""
        self.stopping.clear()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close the port and every connection; do nothing if the server is not running."""
        if self._server is None or self._thread is None:
            return
        self.stopping.set()
        self._server.shutdown()
        self._server.close_everything()
        self._thread.join()
        self._server = self._thread = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class _Server(ThreadingHTTPServer):
    # Threads of kept-alive connections are joined in close_everything, after their sockets are shut.
    daemon_threads = False
    block_on_close = True
    request_queue_size = 128

    def __init__(self, owner: LoopbackServer) -> None:
        self.owner = owner
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", owner.port), _Handler)

    def process_request(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: socket.socket) -> None:  # type: ignore[override]
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def close_everything(self) -> None:
        with self._lock:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # the other side was quicker
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Print errors, except those of clients that disconnect."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self._send(self.server.owner.answer(body))

    def do_GET(self) -> None:
        self._send(self.server.owner.answer_get(self.path))

    def _send(self, reply: Reply) -> None:
        if reply.delay_seconds:
            self.server.owner.stopping.wait(reply.delay_seconds)
        if reply.stream is not None:
            self.close_connection = True
            for piece in reply.stream():
                if self.server.owner.stopping.is_set():
                    return
                self.wfile.write(piece)
                self.wfile.flush()
            return
        self.send_response(reply.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply.body)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body[: reply.cut_after])
        self.wfile.flush()
        if reply.cut_after is not None:
            self.close_connection = True

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing: a test's output is its assertions."""
