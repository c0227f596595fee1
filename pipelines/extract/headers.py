"""Checks of headers of any family: their links and their times."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

import polars as pl

from control.clock import utc_now
from pipelines.extract.errors import ChainReorganised, FalseBlockTime
from pipelines.extract.family import HEADERS, Header

MOST_AHEAD = timedelta(seconds=60)
"""Limit by which a block's time may be ahead of this machine's clock."""


def check_clock(network: str, call: str, header: Header) -> None:
    """Check a header's time against this machine's clock.

    Raises:
        FalseBlockTime: the header is ahead.
    """
    now = utc_now()
    if header.time > now + MOST_AHEAD:
        detail = (
            f"block {header.number} is dated {header.time:%Y-%m-%d %H:%M:%S}, and this machine's clock says "
            f"{now:%Y-%m-%d %H:%M:%S} (UTC): the node's times are false, or this machine's clock is behind; compare it "
            "with `date -u`"
        )
        raise FalseBlockTime(network, call, header.number, header.number, detail)


def check_links(network: str, call: str, headers: Iterable[Header]) -> None:
    """Check headers in the order of their numbers.

    Raises:
        ChainReorganised: of two neighbours, the second does not name the first as its parent.
        FalseBlockTime: a header is dated before an earlier one.
    """
    earlier: Header | None = None
    for header in headers:
        if earlier is not None and header.number == earlier.number + 1 and header.parent_hash != earlier.hash:
            detail = f"block {header.number} does not follow the block {earlier.number} read with it"
            raise ChainReorganised(network, call, earlier.number, header.number, detail, block_number=earlier.number)
        if earlier is not None and header.time < earlier.time:
            detail = dated_before(header.number, header.time, earlier.number, earlier.time)
            raise FalseBlockTime(network, call, header.number, header.number, detail)
        earlier = header


def find_first_at_or_after(
    network: str, call: str, instant: datetime, head: Header, low: int, read: Callable[[int], Header]
) -> int | None:
    """Return the number of the first block with a time at or after the instant; None if the head is before it.

    Search back from the head in doubling steps, then bisect: a recent instant takes few calls.

    Args:
        call: name of the call in errors.
        instant: aware.
        low: no earlier block is considered.
        read: returns the header of a number.

    Raises:
        ChainReorganised, FalseBlockTime: as `check_links`.
    """
    if head.time < instant:
        return None
    found, step = head, 1
    while found.number > low:
        probe = read(max(low, found.number - step))
        check_links(network, call, [probe, found])
        if probe.time < instant:
            break
        found, step = probe, step * 2
    else:
        return max(found.number, low)
    before = probe
    while found.number - before.number > 1:
        middle = read((before.number + found.number) // 2)
        check_links(network, call, [before, middle, found])
        if middle.time < instant:
            before = middle
        else:
            found = middle
    return found.number


def dated_before(number: int, time: datetime, earlier_number: int, earlier_time: datetime) -> str:
    """Return the error text for a block that is dated before an earlier one."""
    return (
        f"block {number} is dated {time:%Y-%m-%d %H:%M:%S}, before block {earlier_number} of "
        f"{earlier_time:%Y-%m-%d %H:%M:%S} (UTC): one of the two times is false"
    )


def header_frame(headers: Iterable[Header]) -> pl.DataFrame:
    """Return headers as rows of HEADERS."""
    rows = [header._replace(time=header.time.replace(tzinfo=None)) for header in headers]
    return pl.DataFrame(rows, schema=HEADERS, orient="row")


def header_of(row: tuple[int, str, str, datetime]) -> Header:
    """Return the header in a row of HEADERS."""
    number, hash_, parent_hash, time = row
    return Header(number, hash_, parent_hash, time.replace(tzinfo=UTC))
