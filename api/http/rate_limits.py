"""Rate limits by API key, or by address without a key: fixed windows of one minute.

With the control store in PostgreSQL, all API nodes count the requests of a key together. Addresses and wrong keys are
counted by each process: a client may use ever new addresses, and must not cause a statement with each.
"""

import hashlib
import ipaddress
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from anyio import CapacityLimiter, Lock, to_thread

from api.errors import ApiError
from control.request_windows import Lease

_WINDOW_SECONDS = 60


class RateLimiter:
    """Counter of requests by key, by tenant for embed tokens, or by address. Use it only in the event loop.

    Args:
        per_minute: largest number of requests of one key, tenant or address in a window.
        clock: monotonic clock in seconds.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._windows: dict[str, tuple[float, int]] = {}
        self._swept = clock()

    def admit(self, key_id: str) -> dict[str, str]:
        """Count one request, and return the headers with the number of requests left.

        Raises:
            ApiError: 429, the window has no requests left.
        """
        now = self._clock()
        if now - self._swept >= _WINDOW_SECONDS:
            # A client may use ever new addresses. Sweeping bounds the memory to the requests of two windows.
            self._windows = {key: kept for key, kept in self._windows.items() if now - kept[0] < _WINDOW_SECONDS}
            self._swept = now
        started, count = self._windows.get(key_id, (now, 0))
        if now - started >= _WINDOW_SECONDS:
            started, count = now, 0
        self._windows[key_id] = (started, min(count + 1, self._per_minute))
        return _decide(self._per_minute, self._per_minute - count - 1, started + _WINDOW_SECONDS - now)


@dataclass(slots=True)
class _Bucket:
    """One key on this node: requests `left` of the lease, and `unleased` ones of the window, as `Lease` has them."""

    left: int = 0
    unleased: int = 0
    ends_at: float = float("-inf")
    lock: Lock = field(default_factory=Lock)

    def is_decided(self, now: float) -> bool:
        """Return whether the next request needs no lease: one is left, or the window is used up."""
        return now < self.ends_at and (self.left > 0 or self.unleased == 0)


class SharedRateLimiter:
    """Counter of requests by key or tenant for all API nodes; each node leases batches. Use it only in the event loop.

    Args:
        per_minute: largest number of requests of one key or tenant in a window, of all nodes together.
        lease: leases the next batch of a key, in a thread; at most once a minute its second argument is true, and it
            also deletes old windows.
        threads: limit of the threads for leases.
        clock: monotonic clock in seconds.
    """

    def __init__(
        self,
        per_minute: int,
        lease: Callable[[str, bool], Lease],
        threads: CapacityLimiter,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_minute = per_minute
        self._lease = lease
        self._threads = threads
        self._clock = clock
        self._buckets: dict[str, _Bucket] = {}
        self._swept = clock()

    async def admit(self, key_id: str) -> dict[str, str]:
        """Count one request, and return the headers with the number of requests left.

        That number is an upper bound: requests that other nodes leased since this node's last lease are not known.

        Raises:
            ApiError: 429, the window has no requests left.
            StoreUnavailable: the control store does not answer.
        """
        bucket = self._buckets.setdefault(key_id, _Bucket())
        if not bucket.is_decided(self._clock()):
            # Requests that wait for the same lease share it.
            async with bucket.lock:
                if not bucket.is_decided(self._clock()):
                    await self._renew(key_id, bucket)
        # The request that leased is admitted even if the window ended meanwhile: the database counted it in the window.
        if bucket.left == 0:
            left = -1
        else:
            bucket.left -= 1
            left = bucket.left + bucket.unleased
        return _decide(self._per_minute, left, bucket.ends_at - self._clock())

    async def _renew(self, key_id: str, bucket: _Bucket) -> None:
        began_at = self._clock()
        is_sweeping = began_at - self._swept >= _WINDOW_SECONDS
        if is_sweeping:
            self._swept = began_at
            self._buckets = {
                key: kept for key, kept in self._buckets.items() if kept.lock.locked() or began_at < kept.ends_at
            }
        lease = await to_thread.run_sync(self._lease, key_id, is_sweeping, limiter=self._threads)
        bucket.left, bucket.unleased = lease.granted, lease.unleased
        # From the call's begin: the lease must not outlive the window of the database.
        bucket.ends_at = began_at + lease.seconds_left


def _decide(per_minute: int, left: int, seconds_left: float) -> dict[str, str]:
    """Return the headers of an admitted request.

    Args:
        per_minute: limit of a window.
        left: number of requests that may follow in the window; negative if this one is beyond the limit.
        seconds_left: time to the end of the window.

    Raises:
        ApiError: 429, the request is beyond the limit.
    """
    seconds = max(1, round(seconds_left))
    headers = {
        "ratelimit-policy": f'"default";q={per_minute};w={_WINDOW_SECONDS}',
        "ratelimit": f'"default";r={max(0, left)};t={seconds}',
    }
    if left < 0:
        raise ApiError(
            429,
            "rate-limited",
            f"the limit of {per_minute} requests per minute is reached; retry in {seconds} s",
            headers={"Retry-After": str(seconds), **headers},
        )
    return headers


class Refusals:
    """Limits on wrong API keys, per address and in total. Use it only in the event loop.

    A recently valid key is exempt from the limits. So an attacker does not lock out clients that share his address, as
    behind a proxy.

    Args:
        clock: monotonic clock in seconds.
    """

    per_address = 60
    in_all = 3_000
    _most_known = 10_000

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._refused: dict[str, int] = {}
        self._total = 0
        self._known: dict[bytes, None] = {}

    def check(self, address: str, token: str) -> None:
        """Check that a key may be looked up.

        Args:
            address: result of `address_key`.
            token: the key.

        Raises:
            ApiError: 429, the address sent too many wrong keys, or all addresses together did.
        """
        now = self._clock()
        if now - self._began >= _WINDOW_SECONDS:
            self._began, self._total, self._refused = now, 0, {}
        if _digest(token) in self._known:
            return
        if self._refused.get(address, 0) >= self.per_address:
            detail = f"the address sent {self.per_address} wrong API keys in a minute"
        elif self._total >= self.in_all:
            detail = f"the service got {self.in_all} wrong API keys in a minute"
        else:
            return
        seconds_left = max(1, round(self._began + _WINDOW_SECONDS - now))
        raise ApiError(
            429,
            "rate-limited",
            f"{detail}; check the key, and retry in {seconds_left} s",
            headers={"Retry-After": str(seconds_left)},
        )

    def add(self, address: str, token: str) -> None:
        """Count a wrong key."""
        self._known.pop(_digest(token), None)
        self._refused[address] = self._refused.get(address, 0) + 1
        self._total += 1

    def forgive(self, token: str) -> None:
        """Record that a key is valid."""
        digest = _digest(token)
        self._known.pop(digest, None)
        self._known[digest] = None
        if len(self._known) > self._most_known:
            del self._known[next(iter(self._known))]


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def address_key(host: str | None) -> str:
    """Return the key that counts a client without a credential: its IPv4 address, or its IPv6 network."""
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return f"address {host}"
    if address.version == 4:
        return f"address {address}"
    # Providers give each subscriber a network of 64 bits or larger.
    return f"address {ipaddress.ip_network((address, 64), strict=False)}"
