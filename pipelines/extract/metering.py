"""Counting what a provider is asked, where it is sent. What it is counted for is said by who asks."""

import threading

from pipelines.rows import RpcUsage


class Meter:
    """Counts requests as they are sent and the bytes of answers as they come; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests = 0
        self._answer_bytes = 0

    def sent(self, requests: int) -> None:
        """Count requests that go out now, whatever becomes of them."""
        with self._lock:
            self._requests += requests

    def received(self, answer_bytes: int) -> None:
        """Count an answer, decompressed."""
        with self._lock:
            self._answer_bytes += answer_bytes

    def take(self) -> RpcUsage:
        """What was counted since this was asked last."""
        with self._lock:
            spent = RpcUsage(self._requests, self._answer_bytes)
            self._requests = self._answer_bytes = 0
        return spent
