"""Meter of the requests to a provider. Its callers assign the usage to a purpose."""

import threading

from pipelines.rows import RpcUsage


class Meter:
    """Counts requests when they are sent and bytes of answers when they arrive; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests = 0
        self._answer_bytes = 0

    def sent(self, requests: int) -> None:
        """Count requests that are sent now, including those that will fail."""
        with self._lock:
            self._requests += requests

    def received(self, answer_bytes: int) -> None:
        """Count an answer, in decompressed bytes."""
        with self._lock:
            self._answer_bytes += answer_bytes

    def take(self) -> RpcUsage:
        """Return the usage since the last call."""
        with self._lock:
            spent = RpcUsage(self._requests, self._answer_bytes)
            self._requests = self._answer_bytes = 0
        return spent
