"""Turns decide which requests may use a thread, so that neither writers nor a single tenant occupy all threads.

A request waits for its turn in the event loop, without a thread or a connection to the control store.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread

from api.errors import ApiError

Result = TypeVar("Result")

_WAIT_SECONDS = 30
_MOST_WAITING = 64


class Turns:
    """Threads for one kind of work, shared fairly among tenants. Use it only in the event loop.

    Args:
        work: plural name of the work, for errors.
        capacity: largest number of turns at once.
        share: largest number of turns of one tenant at once.
        most_waiting: largest number of waiting requests of one tenant.
        wait_seconds: longest time to wait.
    """

    def __init__(
        self,
        work: str,
        capacity: int,
        share: int,
        most_waiting: int = _MOST_WAITING,
        wait_seconds: float = _WAIT_SECONDS,
    ) -> None:
        self._work = work
        self._capacity = capacity
        self._share = share
        self._most_waiting = most_waiting
        self._wait_seconds = wait_seconds
        self._running: Counter[str] = Counter()
        # Tenants in the order of their last turns, oldest first.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        # Turns limit the threads already. The default limiter of anyio would also count threads of other work.
        self._threads = CapacityLimiter(capacity)

    async def run(self, tenant_id: str, function: Callable[[], Result]) -> Result:
        """Run a function in a thread in the tenant's turn. Raises the errors of `turn` and of the function."""
        async with self.turn(tenant_id):
            return await to_thread.run_sync(function, limiter=self._threads)

    @asynccontextmanager
    async def turn(self, tenant_id: str) -> AsyncIterator[None]:
        """Wait for a turn of a tenant, and hold it.

        Raises:
            ApiError: 429, too many requests of the tenant wait already; 503, the wait was too long.
        """
        if not self._may_run(tenant_id):
            await self._wait(tenant_id)
        else:
            self._running[tenant_id] += 1
        try:
            yield
        finally:
            self._leave(tenant_id)

    def _may_run(self, tenant_id: str) -> bool:
        return self._running.total() < self._capacity and self._running[tenant_id] < self._share

    async def _wait(self, tenant_id: str) -> None:
        waiting = self._waiting.setdefault(tenant_id, deque())
        if len(waiting) >= self._most_waiting:
            raise ApiError(
                429,
                "too-many-waiting",
                f"{len(waiting)} {self._work} of the tenant are waiting already; send fewer at once",
                headers={"Retry-After": "1"},
            )
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(granted)
        try:
            async with asyncio.timeout(self._wait_seconds):
                await granted
        except BaseException as error:
            if granted.done() and not granted.cancelled():
                self._leave(tenant_id)  # the turn was granted while the wait ended
            else:
                self._forget(tenant_id, granted)
            if isinstance(error, TimeoutError):
                raise self._busy() from error
            raise

    def _busy(self) -> ApiError:
        detail = f"the request waited {self._wait_seconds} s for other {self._work}; retry later"
        return ApiError(503, "busy", detail, headers={"Retry-After": "5"})

    def _leave(self, tenant_id: str) -> None:
        self._running[tenant_id] -= 1
        if not self._running[tenant_id]:
            del self._running[tenant_id]
        for waiting_id in list(self._waiting):
            if self._may_run(waiting_id):
                self._grant(waiting_id)

    def _grant(self, tenant_id: str) -> None:
        """Give a turn to the first waiting request of a tenant, and move the tenant behind the others."""
        waiting = self._waiting.pop(tenant_id)
        while waiting:
            granted = waiting.popleft()
            # The wait of a request may have ended before its task could run and leave the queue.
            if not granted.done():
                self._running[tenant_id] += 1
                granted.set_result(None)
                break
        if waiting:
            self._waiting[tenant_id] = waiting

    def _forget(self, tenant_id: str, granted: asyncio.Future[Any]) -> None:
        waiting = self._waiting.get(tenant_id, deque())
        if granted in waiting:
            waiting.remove(granted)
            if not waiting:
                del self._waiting[tenant_id]
