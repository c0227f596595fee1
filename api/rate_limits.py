"""How many requests a key, or whoever has none yet, may make: fixed windows of a minute, counted in this process.

Several processes each count for themselves.
"""

import ipaddress
import time
from collections.abc import Callable

from api.errors import ApiError

_WINDOW_SECONDS = 60


class RateLimiter:
    """Counts requests by key, by the tenant of embed tokens, or by address; used from the event loop alone.

    Args:
        per_minute: most requests of one of them in a window.
        clock: seconds, never running backwards.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._windows: dict[str, tuple[float, int]] = {}
        self._swept = clock()

    def admit(self, key_id: str) -> dict[str, str]:
        """Count one request and return the headers that say how many are left.

        Raises:
            ApiError: 429, the window is used up.
        """
        now = self._clock()
        if now - self._swept >= _WINDOW_SECONDS:
            # Anybody can come from ever new addresses; what is kept is no more than the requests of two windows.
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


def address_key(host: str | None) -> str:
    """Return what the requests of a client without a credential are counted by: its address, of IPv6 the network."""
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return f"address {host}"
    if address.version == 4:
        return f"address {address}"
    # One subscriber has at least a network of 64 bits.
    return f"address {ipaddress.ip_network((address, 64), strict=False)}"
