"""One HTTP request: sends it, reads a bounded answer by a deadline. Asking again, and meaning, go elsewhere.

URLs may hold keys: they leave this module only towards the provider, and errors name a label instead.
"""

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import urllib3

from pipelines.extract.pacing import LONGEST_RETRY_AFTER_SECONDS

# Measured on 63 MB of logs: 0.04 CPU seconds in pieces of 64 KiB into one buffer, 0.10 in pieces of 1 MiB joined.
_PIECE_BYTES = 64 * 1024


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

    def send(
        self,
        method: str,
        url: str,
        label: str,
        headers: Mapping[str, str],
        body: bytes | None,
        deadline: float,
        max_bytes: int,
    ) -> Reply:
        """Send a request and read the answer.

        Args:
            label: what errors say in place of the URL.
            deadline: the answer is complete by then or given up.
            max_bytes: of the answer, decompressed.

        Raises:
            TransportFault: no connection, a time-out, or an answer cut off.
            AnswerTooLarge: more than max_bytes.
        """
        remaining = max(deadline - self._clock(), 0.001)
        connect, read = self._timeout
        try:
            response = self._pool.request(
                method,
                url,
                body=body,
                headers=headers,
                timeout=urllib3.Timeout(connect=min(connect, remaining), read=min(read, remaining)),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            try:
                content = self._read(response, label, deadline, max_bytes)
            except BaseException:
                response.close()
                raise
            response.release_conn()
        except urllib3.exceptions.NewConnectionError:
            raise TransportFault(f"{label}: no connection") from None
        except urllib3.exceptions.ConnectTimeoutError:
            raise TransportFault(f"{label}: no connection in time") from None
        except (urllib3.exceptions.ReadTimeoutError, TimeoutError):
            raise TransportFault(f"{label}: no answer in time", timed_out=True) from None
        except urllib3.exceptions.SSLError:
            raise TransportFault(f"{label}: no trusted TLS connection") from None
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise TransportFault(f"{label}: the answer was cut off ({type(error).__name__})") from None
        return Reply(response.status, content, _retry_after(response.headers.get("Retry-After")))

    def _read(self, response: urllib3.BaseHTTPResponse, label: str, deadline: float, max_bytes: int) -> bytearray:
        content = bytearray()
        while piece := response.read1(_PIECE_BYTES):
            content += piece
            if len(content) > max_bytes:
                raise AnswerTooLarge
            if self._clock() > deadline:
                raise TransportFault(f"{label}: no complete answer in time", timed_out=True)
        return content

    def close(self) -> None:
        """Close the kept connections."""
        self._pool.clear()


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
