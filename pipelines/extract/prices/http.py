"""GET requests to one price source: its pace, its time-outs, and bounded retries.

Callers interpret the answers.
"""

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

import urllib3

from control.pricing.definitions import PriceSource
from pipelines.extract.errors import SourceMalformed, SourceRateLimited, SourceRefused, SourceUnreachable
from pipelines.extract.pacing import Pacer
from warehouse.transport import AnswerTooLarge, Reply, Transport, TransportFault

T = TypeVar("T")

_LONGEST_MESSAGE = 300
# The longest known answer is Binance's list of markets, some 20 MB.
_MOST_BYTES = 48 * 1024 * 1024
_MOST_SECONDS = 120.0
# Binance returns 418 to a client that continued after 429.
_RATE_STATUSES = (418, 429)


class HttpClient:
    """Sends GET requests to one source; used by one thread at a time.

    Failed connections, time-outs, answers cut off, HTTP 429 and 5xx are retried with exponential back-off and full
    jitter, or after the time in `Retry-After`; other answers never.

    Args:
        source: its definition; says pace, time-out and attempts.
        secrets: texts that no error shows.
        sleep, clock: replaced in tests.

    Attributes:
        patience: seconds to wait for each of the next answers, without another try after a time-out; None: as many as
            the source's definition says, with all tries.
    """

    def __init__(
        self,
        source: PriceSource,
        secrets: tuple[str, ...] = (),
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.source_id = source.id
        self._max_attempts = source.max_attempts
        self._secrets = secrets
        self._clock = clock
        self.patience: float | None = None
        self._transport = Transport((source.timeout_seconds, source.timeout_seconds), 1, clock)
        self._pacer = Pacer(sleep, clock, 1 / source.requests_per_second if source.requests_per_second else 0.0)

    def get(self, url: str, call: str, read: Callable[[Reply], T], headers: Mapping[str, str] | None = None) -> T:
        """Send a request; retry it where waiting may help.

        Args:
            call: name of the request in errors.
            read: turns an answer into a result. If it raises SourceUnreachable or SourceRateLimited, the request is
                retried as if the transport had failed. It receives any status but 429, 418, 408 and 5xx.

        Raises:
            PriceSourceError: any of its kinds.
        """
        deadline = self._clock() + _MOST_SECONDS
        return self._pacer.persist(
            lambda: self._ask_once(url, call, read, headers, deadline),
            lambda detail: SourceRateLimited(self.source_id, call, detail),
            most_attempts=self._max_attempts,
            deadline=deadline,
            retry_timeouts=self.patience is None,
        )

    def _ask_once(
        self, url: str, call: str, read: Callable[[Reply], T], headers: Mapping[str, str] | None, deadline: float
    ) -> T:
        sent = {"User-Agent": "ledgermart", **urllib3.util.make_headers(accept_encoding="gzip"), **(headers or {})}
        if self.patience is not None:
            deadline = min(deadline, self._clock() + self.patience)
        try:
            reply = self._transport.send("GET", url, sent, None, deadline, _MOST_BYTES)
        except TransportFault as fault:
            raise SourceUnreachable(self.source_id, call, fault.reason, timed_out=fault.timed_out) from None
        except AnswerTooLarge:
            raise SourceMalformed(self.source_id, call, f"the answer is larger than {_MOST_BYTES} bytes") from None
        message, words = f"HTTP {reply.status}", self.describe(reply)
        if reply.status in _RATE_STATUSES:
            raise SourceRateLimited(self.source_id, call, message, retry_after=reply.retry_after, words=words)
        if reply.status >= 500 or reply.status == 408:
            if reply.retry_after is not None:
                raise SourceRateLimited(self.source_id, call, message, retry_after=reply.retry_after, words=words)
            raise SourceUnreachable(self.source_id, call, message, words=words)
        return read(reply)

    def describe(self, reply: Reply) -> str:
        """Return status and the beginning of the text, for the log."""
        text = bytes(reply.body[:_LONGEST_MESSAGE]).decode("utf-8", "replace").strip()
        return self.redact(f"HTTP {reply.status}" + (f" {text}" if text and not text.startswith("<") else ""))

    def redact(self, text: str) -> str:
        """Return a text for the log: at most 300 characters, without secrets and control characters."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return "".join(character if character.isprintable() else " " for character in text[:_LONGEST_MESSAGE])

    def check_status(self, reply: Reply, call: str) -> None:
        """Raise an error for any status but 200.

        Raises:
            SourceRefused: names the status.
        """
        if reply.status != 200:
            raise SourceRefused(self.source_id, call, f"HTTP {reply.status}", words=self.describe(reply))

    def close(self) -> None:
        """Close the kept connections."""
        self._transport.close()
