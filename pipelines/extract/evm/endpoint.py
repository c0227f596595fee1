"""One URL of a provider: posts a body, reads a bounded answer. What the answer says is not its business.

A URL may hold a key, in its path, query or user part. It leaves this module only towards the provider.
"""

import logging
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import urllib3

from pipelines.extract.evm.pacing import LONGEST_RETRY_AFTER_SECONDS, Pacer

# Measured on 63 MB of logs: 0.04 CPU seconds in pieces of 64 KiB into one buffer, 0.10 in pieces of 1 MiB joined.
_PIECE_BYTES = 64 * 1024
_SHORTEST_SECRET = 6


class TransportFault(Exception):
    """The exchange broke off; `timed_out` where it did because the provider was slow."""

    def __init__(self, reason: str, *, timed_out: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.timed_out = timed_out


class AnswerTooLarge(Exception):
    """The answer is larger than the caller takes; it was not read to its end."""


@dataclass(frozen=True)
class Reply:
    """An HTTP answer, read to its end."""

    status: int
    body: bytearray
    retry_after: float | None


class Endpoint:
    """One URL with its connections and its pace; thread-safe.

    Args:
        url: http or https, with whatever keys the provider wants in it.
        timeout: seconds to connect, and to wait for the next bytes.
        connections: kept alive at most.
    """

    def __init__(
        self,
        url: str,
        timeout: tuple[float, float],
        connections: int,
        sleep: Callable[[float], None],
        clock: Callable[[], float],
    ) -> None:
        parts, self.label = _parse(url)
        # At DEBUG, urllib3 logs each request with its path.
        logging.getLogger("urllib3.connectionpool").setLevel(logging.INFO)
        self.host = str(parts.hostname)
        self._url = f"{parts.scheme}://{self.label}{parts.path or '/'}" + (f"?{parts.query}" if parts.query else "")
        self._headers = {
            "Content-Type": "application/json",
            "User-Agent": "ledgermart",
            **urllib3.util.make_headers(accept_encoding="gzip"),
        }
        secrets = [*parts.path.split("/"), *(value for _, value in parse_qsl(parts.query))]
        if parts.username is not None:
            user, password = unquote(parts.username), unquote(parts.password or "")
            self._headers |= urllib3.util.make_headers(basic_auth=f"{user}:{password}")
            secrets += [user, password]
        self._secrets = sorted({secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}, key=len, reverse=True)
        self._timeout = timeout
        self._clock = clock
        self._pool = urllib3.PoolManager(num_pools=1, maxsize=connections)
        self.pacer = Pacer(sleep, clock)
        self.is_chain_checked = False

    def redact(self, text: str) -> str:
        """The text without any part of the URL that may be a key."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def post(self, body: bytes, deadline: float, max_bytes: int) -> Reply:
        """Send a JSON body and read the answer.

        Args:
            deadline: on the clock given at construction; the answer is complete by then or given up.
            max_bytes: of the answer, decompressed.

        Raises:
            TransportFault: no connection, a time-out, or an answer cut off.
            AnswerTooLarge: more than max_bytes.
        """
        remaining = max(deadline - self._clock(), 0.001)
        connect, read = self._timeout
        try:
            response = self._pool.request(
                "POST",
                self._url,
                body=body,
                headers=self._headers,
                timeout=urllib3.Timeout(connect=min(connect, remaining), read=min(read, remaining)),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            try:
                content = self._read(response, deadline, max_bytes)
            except BaseException:
                response.close()
                raise
            response.release_conn()
        except urllib3.exceptions.NewConnectionError:
            raise TransportFault(f"{self.label}: no connection") from None
        except urllib3.exceptions.ConnectTimeoutError:
            raise TransportFault(f"{self.label}: no connection in time") from None
        except (urllib3.exceptions.ReadTimeoutError, TimeoutError):
            raise TransportFault(f"{self.label}: no answer in time", timed_out=True) from None
        except urllib3.exceptions.SSLError:
            raise TransportFault(f"{self.label}: no trusted TLS connection") from None
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise TransportFault(f"{self.label}: the answer was cut off ({type(error).__name__})") from None
        return Reply(response.status, content, _retry_after(response.headers.get("Retry-After")))

    def _read(self, response: urllib3.BaseHTTPResponse, deadline: float, max_bytes: int) -> bytearray:
        content = bytearray()
        while piece := response.read1(_PIECE_BYTES):
            content += piece
            if len(content) > max_bytes:
                raise AnswerTooLarge
            if self._clock() > deadline:
                raise TransportFault(f"{self.label}: no complete answer in time", timed_out=True)
        return content

    def close(self) -> None:
        """Close the kept connections."""
        self._pool.clear()


def other_urls(urls: Iterable[str], provider: str) -> list[str]:
    """The URLs that lead to somebody else than the provider: whom to ask for a second opinion, in their order.

    Args:
        provider: as `RpcClient.provider` names it. The same host and port under another key is no other provider.
    """
    return [url for url in urls if _parse(url)[1] != provider]


def _parse(url: str) -> tuple[SplitResult, str]:
    """The parts of a URL, and its host, with the port where it names one."""
    # Without the URL in the messages, and with causes cut: both would show the key.
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("an RPC URL cannot be parsed") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("an RPC URL must begin with http:// or https:// and name a host")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return parts, host if port is None else f"{host}:{port}"


def _retry_after(header: str | None) -> float | None:
    """Seconds to wait, from either form of the header, within bounds; None where it is absent or unreadable."""
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
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER_SECONDS)
