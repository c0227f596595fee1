"""Prices of windows from a source's prices: the last one at or before each window's end. Pure."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import gcd
from typing import NamedTuple, Protocol

from control.pricing.definitions import GRANULARITIES
from control.pricing.discovery import Window
from pipelines.prices.discovery_store import WindowPrice

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class WindowSegment(NamedTuple):
    """Neighbouring windows with the same granularity: prices effective after start and until end."""

    start: datetime
    end: datetime
    granularity: str


class Price(Protocol):
    """A price that is effective from a moment on."""

    @property
    def effective_from(self) -> datetime: ...
    @property
    def price(self) -> Decimal: ...


def plan(windows: Sequence[Window], granularities: Sequence[str]) -> list[WindowSegment]:
    """Return the granularities in which to read the windows.

    The coarsest granularity that divides all bounds gives each window's last price exactly, with the fewest prices to
    read. A partial last window is planned separately, so that the others need not be read finely. If no granularity
    fits, the finest is read: a window's price is then the newest one known at its end.

    Args:
        windows: contiguous, at least one; only the last may be partial.
        granularities: those of the source, finest first.
    """
    parts = [windows[:-1], windows[-1:]] if windows[-1].is_partial and len(windows) > 1 else [windows]
    segments: list[WindowSegment] = []
    for part in parts:
        granularity = _coarsest(part, granularities)
        if segments and segments[-1].granularity == granularity:
            segments[-1] = segments[-1]._replace(end=part[-1].end)
        else:
            segments.append(WindowSegment(part[0].start, part[-1].end, granularity))
    return segments


def _coarsest(windows: Sequence[Window], granularities: Sequence[str]) -> str:
    bounds = (windows[0].start, *(window.end for window in windows))
    common = gcd(*((bound - _EPOCH) // _MICROSECOND for bound in bounds))
    for granularity in reversed(granularities):
        step = GRANULARITIES[granularity] * 1_000_000
        if step and common % step == 0:
            return granularity
    return granularities[0]


class WindowFill:
    """Fills windows from prices that arrive in time order, in pieces.

    Args:
        windows: contiguous, at least one.
        done: number of windows that were filled or found empty before.
        pending: the newest price read so far in the next window.
    """

    def __init__(self, windows: Sequence[Window], done: int = 0, pending: Decimal | None = None) -> None:
        self._windows = windows
        self.done = done
        self.pending = pending

    def take(
        self, prices: Sequence[Price], up_to: datetime
    ) -> tuple[list[WindowPrice], list[tuple[datetime, datetime]]]:
        """Take the next prices, by effective_from; with the earlier ones, they are complete until `up_to`.

        Returns:
            The prices of the windows that are complete now, and the spans of those without one, neighbours united.
        """
        found: list[WindowPrice] = []
        gaps: list[tuple[datetime, datetime]] = []
        for price in prices:
            self._close(price.effective_from - _MICROSECOND, found, gaps)
            if self.done < len(self._windows):
                self.pending = price.price
        self._close(up_to, found, gaps)
        return found, gaps

    def _close(self, moment: datetime, found: list[WindowPrice], gaps: list[tuple[datetime, datetime]]) -> None:
        """Complete every window that ends at or before the moment."""
        for window in self._ended(moment):
            if self.pending is not None:
                found.append(WindowPrice(window.start, window.end, self.pending, window.is_partial))
            elif gaps and gaps[-1][1] == window.start:
                gaps[-1] = (gaps[-1][0], window.end)
            else:
                gaps.append((window.start, window.end))
            self.pending = None
            self.done += 1

    def _ended(self, moment: datetime) -> Iterator[Window]:
        while self.done < len(self._windows) and self._windows[self.done].end <= moment:
            yield self._windows[self.done]
