"""Memory and open files of each process over time, and the verdict whether they are flat."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psutil

_MIB = 2**20
# Allowed growth between the first and the last third: a part, or the amount if that is more.
_ALLOWED_PART = 0.10
_ALLOWED_MIB = 32.0
_ALLOWED_HANDLES = 8.0
# Caches and connections fill at first.
_WARM_UP_PART = 0.2
_LEAST_SAMPLES = 3

ALLOWANCE = (
    f"allowed between the medians of the first and the last third, after the first {_WARM_UP_PART:.0%}: "
    f"{_ALLOWED_PART:.0%}, or {_ALLOWED_MIB:.0f} MiB and {_ALLOWED_HANDLES:.0f} open files if that is more"
)


@dataclass(frozen=True)
class Sample:
    """Resident memory in MiB and number of open files of one process."""

    memory: float
    handles: float


@dataclass(frozen=True)
class Growth:
    """One quantity of one process over time."""

    process: str
    quantity: str
    values: Sequence[float]
    allowed: float

    @property
    def thirds(self) -> tuple[float, float]:
        """Medians of the first and the last third, after the warm-up."""
        warm = self.values[int(len(self.values) * _WARM_UP_PART) :]
        third = max(len(warm) // 3, 1)
        return statistics.median(warm[:third]), statistics.median(warm[-third:])

    @property
    def is_flat(self) -> bool:
        """True if the last third is not above the first one by more than is allowed."""
        first, last = self.thirds
        return last - first <= max(self.allowed, first * _ALLOWED_PART)

    def cells(self) -> tuple[str, ...]:
        """Return the texts of a row of the table."""
        numbers = (self.values[0], self.values[-1], max(self.values), *self.thirds)
        verdict = "flat" if self.is_flat else "**GROWS**"
        return (self.process, self.quantity, *(f"{number:,.0f}" for number in numbers), verdict)


def sample(processes: Mapping[str, Sequence[psutil.Process]]) -> dict[str, Sample]:
    """Measure the main process of each role; runs, which live for seconds, are left out."""
    found = {}
    for role, (process, *_) in processes.items():
        try:
            with process.oneshot():
                found[role] = Sample(process.memory_info().rss / _MIB, process.num_fds())
        except psutil.NoSuchProcess:
            continue
    return found


def growths(samples: Sequence[Mapping[str, Sample]]) -> list[Growth]:
    """Return the memory and open files of each process that was measured often enough."""
    found = []
    for role in dict.fromkeys(role for taken in samples for role in taken):
        of_role = [taken[role] for taken in samples if role in taken]
        if len(of_role) >= _LEAST_SAMPLES:
            found.append(Growth(role, "memory, MiB", [one.memory for one in of_role], _ALLOWED_MIB))
            found.append(Growth(role, "open files", [one.handles for one in of_role], _ALLOWED_HANDLES))
    return found
