"""One HTTP request with a bounded answer and a deadline. Callers retry and interpret.

URLs may hold keys: they leave this module only towards the provider, and no error names any part of one.
"""

import logging
import math
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, ClassVar

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.util.connection import create_connection

# Measured on 63 MB of logs: 0.04 CPU seconds in pieces of 64 KiB into one buffer, 0.10 in pieces of 1 MiB joined.
_PIECE_BYTES = 64 * 1024
_LEAST_SECONDS = 0.001
_LONGEST_RETRY_AFTER_SECONDS = 60.0


class TransportFault(Exception):
    """The exchange broke off; `timed_out` if the provider was too slow."""

    def __init__(self, reason: str, *, timed_out: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.timed_out = timed_out


class AnswerTooLarge(Exception):
    """The answer is larger than the caller's limit; the rest was not read."""


@dataclass(frozen=True)
class Reply:
    """A complete HTTP answer; `etag` is the header of that name."""

    status: int
    body: bytearray
    retry_after: float | None
    etag: str | None = None


class _Call:
    """One call's deadline. It shuts the call's connection down in any phase of the exchange.

    The time-outs of a socket do not bound an exchange: each byte of a header, a `100 Continue` or a trailer restarts
    them.
    """

    def __init__(self, deadline: float, clock: Callable[[], float]) -> None:
        self._deadline = deadline
        self._clock = clock
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(self.seconds_left(), self._end)
        self._timer.daemon = True
        self.is_over = False

    def seconds_left(self) -> float:
        """Return the seconds until the deadline, above 0."""
        return max(self._deadline - self._clock(), _LEAST_SECONDS)

    def has_ended(self) -> bool:
        """Return whether the deadline is over."""
        return self.is_over or self._clock() >= self._deadline

    def watch(self, connected: socket.socket) -> None:
        """Shut this socket down at the deadline."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()
            # A separate descriptor, because the connection may close its own one before the answer ends, if that has
            # no length.
            self._socket = connected.dup()
            if self.is_over:
                _shut_down(self._socket)

    def _end(self) -> None:
        with self._lock:
            self.is_over = True
            if self._socket is not None:
                _shut_down(self._socket)

    def __enter__(self) -> "_Call":
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        with self._lock:
            if self._socket is not None:
                self._socket.close()
            self._socket = None


def _shut_down(connected: socket.socket) -> None:
    try:
        connected.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the other side was quicker


_CALL: ContextVar[_Call] = ContextVar("call")


class _Watched(HTTPConnection):
    """A connection that the current call's deadline can end: while it connects, in TLS, and afterwards."""

    # The same connection under another descriptor, because TLS takes the first one over.
    _twin: socket.socket | None = None

    def _new_conn(self) -> socket.socket:
        call, problem = _CALL.get(), OSError("the host has no address")
        try:
            found = socket.getaddrinfo(self._dns_host, self.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise urllib3.exceptions.NewConnectionError(self, "the host's name has no address") from error
        for *_, address in found:
            # A name may have thousands of addresses, each with a time-out of its own.
            if call.has_ended():
                break
            patience = min(float(self.timeout or call.seconds_left()), call.seconds_left())
            try:
                connected = create_connection(
                    (str(address[0]), int(address[1])), patience, socket_options=self.socket_options
                )
            except OSError as error:
                problem = error
                continue
            self._twin = connected.dup()
            call.watch(self._twin)
            return connected
        if call.has_ended() or isinstance(problem, TimeoutError):
            raise urllib3.exceptions.ConnectTimeoutError(self, "no connection in time") from problem
        raise urllib3.exceptions.NewConnectionError(self, "no connection") from problem

    def request(self, *arguments: Any, **options: Any) -> None:
        """Send a request, also over a kept connection, under the deadline of its call."""
        if self._twin is not None:
            _CALL.get().watch(self._twin)
        super().request(*arguments, **options)

    def close(self) -> None:
        """Close both descriptors."""
        super().close()
        if self._twin is not None:
            self._twin.close()
            self._twin = None


class _WatchedTls(_Watched, HTTPSConnection):
    """The same over TLS."""


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls: ClassVar[type[HTTPConnection]] = _Watched  # type: ignore[misc]


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls: ClassVar[type[HTTPSConnection]] = _WatchedTls  # type: ignore[misc]


class Transport:
    """Kept connections to one provider; thread-safe. Follows no redirect and repeats nothing.

    Args:
        timeout: seconds to connect, and to wait for the next bytes.
        connections: kept alive at most.
        clock: that of the deadlines.
    """

    def __init__(self, timeout: tuple[float, float], connections: int, clock: Callable[[], float]) -> None:
        # At DEBUG, urllib3 logs each request with its path.
        logging.getLogger("urllib3.connectionpool").setLevel(logging.INFO)
        self._timeout = timeout
        self._clock = clock
        self._pool = urllib3.PoolManager(num_pools=1, maxsize=connections)
        self._pool.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}

    def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        deadline: float,
        max_bytes: int,
        patience: float | None = None,
    ) -> Reply:
        """Send a request and read the answer.

        Args:
            deadline: the answer is complete by then or given up; it covers connecting, TLS, sending, headers, body and
                trailers. Only the look-up of the host's name has the system resolver's time-out instead.
            max_bytes: of the answer, decompressed.
            patience: seconds to wait for the next bytes; replaces the one given at construction.

        Raises:
            TransportFault: no connection, a time-out, or an answer cut off.
            AnswerTooLarge: more than max_bytes.
        """
        with _Call(deadline, self._clock) as call:
            in_force = _CALL.set(call)
            try:
                return self._exchange(call, method, url, headers, body, max_bytes, patience or self._timeout[1])
            except TransportFault:
                raise
            except urllib3.exceptions.ConnectTimeoutError:
                raise TransportFault("no connection in time") from None
            except urllib3.exceptions.NewConnectionError:
                raise TransportFault("no connection") from None
            except (urllib3.exceptions.HTTPError, OSError) as error:
                # If the deadline ended the exchange, the error says only that the connection is closed.
                if call.is_over or _is_timeout(error):
                    raise TransportFault("no complete answer in time", timed_out=True) from None
                if isinstance(error, urllib3.exceptions.SSLError):
                    raise TransportFault("no trusted TLS connection") from None
                raise TransportFault(f"the answer was cut off ({type(error).__name__})") from None
            finally:
                _CALL.reset(in_force)

    def _exchange(
        self,
        call: _Call,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        max_bytes: int,
        read: float,
    ) -> Reply:
        connect = self._timeout[0]
        response = self._pool.request(
            method,
            url,
            body=body,
            headers=headers,
            timeout=urllib3.Timeout(connect=min(connect, call.seconds_left()), read=min(read, call.seconds_left())),
            retries=False,
            redirect=False,
            preload_content=False,
        )
        try:
            content = bytearray()
            while piece := response.read1(_PIECE_BYTES):
                content += piece
                if len(content) > max_bytes:
                    raise AnswerTooLarge
            # The end of a connection that was shut down looks like the end of an answer without a length.
            if call.is_over:
                raise TransportFault("no complete answer in time", timed_out=True)
        except BaseException:
            response.close()
            raise
        response.release_conn()
        headers = response.headers
        return Reply(response.status, content, _retry_after(headers.get("Retry-After")), headers.get("ETag"))

    def close(self) -> None:
        """Close the kept connections."""
        self._pool.clear()


def _is_timeout(error: Exception) -> bool:
    """Return whether a socket waited for too long; while it sends, urllib3 wraps its error in a ProtocolError."""
    cause = error.args[-1] if isinstance(error, urllib3.exceptions.ProtocolError) else error
    return isinstance(cause, urllib3.exceptions.ReadTimeoutError | TimeoutError)


def _retry_after(header: str | None) -> float | None:
    """Return the seconds to wait, from either form of the header, within bounds; None if absent or unreadable."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time.time()
        except ValueError:
            return None
    if math.isnan(seconds):
        return None
    return min(max(seconds, 0.0), _LONGEST_RETRY_AFTER_SECONDS)
