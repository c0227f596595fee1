"""Rate limits by API key, or by address without a key: fixed windows of one minute.

Each process counts its own requests.
"""

import hashlib
import ipaddress
import time
from collections.abc import Callable

from api.errors import ApiError

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
        seconds_left = max(1, round(started + _WINDOW_SECONDS - now))
        left = max(0, self._per_minute - count - 1)
        headers = {
            "ratelimit-policy": f'"default";q={self._per_minute};w={_WINDOW_SECONDS}',
            "ratelimit": f'"default";r={left};t={seconds_left}',
        }
        if count >= self._per_minute:
            raise ApiError(
                429,
                "rate-limited",
                f"the limit of {self._per_minute} requests per minute is reached; retry in {seconds_left} s",
                headers={"Retry-After": str(seconds_left), **headers},
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
