"""Covered ranges of a subject in one version, and the moment that an answer describes.

A moment has an exclusive end: blocks and prices before it count. Answers name the newest block before that end which
was stored for the subject's view. All blocks with rows of the subject are stored, so the subject did not change between
that block and the moment. Blocks stored only for other tenants are not shown.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from api.engine.rows import as_naive, as_utc
from api.engine.serving import Snapshot
from api.errors import ApiError
from api.http.parameters import INSTANT, Moment, TimeRange
from api.schema import AsOf, AsOfStatus, Coverage, FieldError, Finality, Gap, GapReason, MetadataStatus
from api.subjects.rows import BlockRow, CoverageRow, TenantHeadRow, TokenRow, WalletRow
from control.pricing.links import LinksInForce
from control.subjects import Kind, SubjectRow, Window

_END_OF_TIME = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class View:
    """A subject in the control store and in one version; its facts are None until the pipeline has collected it.

    `pairs` maps stored addresses of a wallet's assets to the pairs that value them, by the links in force.
    """

    subject: SubjectRow
    windows: Sequence[Window]
    token: TokenRow | None
    wallet: WalletRow | None
    ranges: Sequence[CoverageRow]
    pairs: Mapping[str, int]

    @property
    def keys(self) -> dict[str, Any]:
        """Parameters of queries that select the subject's rows."""
        return {"subject_key": self.subject.subject_key, "tenant_id": self.subject.tenant_id}

    @property
    def decimals(self) -> int | None:
        """Decimals of the token; None for a wallet, or if they are unknown."""
        return self.token.decimals if self.token else None

    @property
    def metadata_status(self) -> MetadataStatus | None:
        """Result of a second reading of the token's contract; None for a wallet, or until the contract was read."""
        return self.token.metadata_status if self.token else None

    @property
    def facts(self) -> TokenRow | WalletRow | None:
        """The subject's own row in the marts."""
        return self.token or self.wallet


@dataclass(frozen=True, slots=True)
class State:
    """The moment that an answer describes; `first_block` is the first block of its covered range.

    Values use the prices at `valued_at`. For a requested instant or day, it is the last moment before the end. For a
    requested block, or the newest block, it is the block's time. It is None if that time was not stored.
    """

    block_number: int
    block_hash: str | None
    block_time: datetime | None
    finality: Finality
    first_block: int
    is_current: bool
    valued_at: datetime | None


def read_view(
    snapshot: Snapshot, subject: SubjectRow, windows: Sequence[Window], links: LinksInForce | None = None
) -> View:
    """Read the facts of a subject from a version, as its tenant may see them.

    Args:
        snapshot: the version.
        subject: the token or wallet.
        windows: its tracking windows.
        links: the tenant's links; None if the answer needs no values, and then a wallet's assets have no pairs.
    """

    def read() -> tuple[TokenRow | None, WalletRow | None, Sequence[CoverageRow]]:
        keys = {"subject_key": subject.subject_key, "tenant_id": subject.tenant_id}
        is_token = subject.kind is Kind.TOKEN
        return (
            snapshot.row("token", TokenRow, **keys) if is_token else None,
            None if is_token else snapshot.row("wallet", WalletRow, **keys),
            snapshot.rows("coverage", CoverageRow, **keys),
        )

    token, wallet, ranges = snapshot.get_or_compute(("view", subject.subject_key, subject.tenant_id), read)
    pairs = links.of_wallet(subject) if links is not None and subject.kind is Kind.WALLET else {}
    return View(subject, windows, token, wallet, ranges, pairs)


def resolve(snapshot: Snapshot, view: View, moment: Moment | None) -> State | None:
    """Return the state that an answer describes: at the requested moment, or at the newest covered block.

    Returns:
        None if the request names no moment and nothing is covered yet.

    Raises:
        ApiError: 409 `not-covered`, with the nearest covered instants before and after, and the gaps at the moment.
    """
    return _current(view) if moment is None else resolve_covered(snapshot, view, moment)


def resolve_of_token(snapshot: Snapshot, view: View, moment: Moment | None) -> tuple[State | None, AsOfStatus]:
    """Return the state of a token with its status; a moment before its creation has no state. Errors as `resolve`."""
    if moment is not None and not _is_covered(view, moment) and _is_before_creation(view, moment):
        return None, "BeforeCreation"
    state = resolve(snapshot, view, moment)
    return state, "NothingCovered" if state is None else "Covered"


def resolve_covered(snapshot: Snapshot, view: View, moment: Moment) -> State:
    """Return the state at a moment; errors as `resolve`."""
    current = _current(view)
    if moment.block_number is not None:
        found = _at_block(snapshot, view, moment.block_number)
    else:
        found = state_before(snapshot, view, _end_of(moment))
    if found is None:
        raise _not_covered(view, moment)
    is_current = current is not None and found.block_number == current.block_number
    return current if current is not None and is_current and found.valued_at == current.valued_at else found


def state_before(snapshot: Snapshot, view: View, end: datetime) -> State | None:
    """Return the state at the last moment before an instant (aware); None if that moment is not covered."""
    covered = covered_range_at(view, end)
    if covered is None:
        return None
    block = _newest_stored(snapshot, view, covered.from_block, covered.to_block, end)
    number = block.block_number if block else covered.from_block
    return _state(snapshot, view, covered, number, block, end - INSTANT)


def to_as_of(view: View, state: State | None, snapshot: Snapshot) -> AsOf:
    """Return the field `asOf` of an answer."""
    return AsOf(
        ledger=view.subject.ledger_name,
        block_number=state.block_number if state else None,
        block_hash=state.block_hash if state else None,
        block_time=state.block_time if state else None,
        finality=state.finality if state else None,
        at=state.valued_at if state else None,
        data_version=snapshot.data_version(view.subject.tenant_id),
    )


def to_coverage(view: View, state: State | None, asked: TimeRange, *, since: State | None = None) -> Coverage:
    """Return the coverage of a range.

    Args:
        view: the subject.
        state: moment of the answer; default end of the range.
        asked: the range.
        since: default start of the range; None for the start of the view.
    """
    first = next((position for position, row in enumerate(view.ranges) if _is_in_view(row)), None)
    if first is None:
        return _nothing_in_view(view, asked)
    start = asked.start or (since.block_time if since else as_utc(view.ranges[first].from_time))
    end = asked.end or (state.block_time if state else None)
    # Default bounds are blocks, since the times of some blocks are unknown.
    first_block = since.block_number if since else view.ranges[first].from_block
    gaps = [
        gap
        for row, gap in _gaps(view)
        if (asked.start is not None or row.to_block is None or row.to_block >= first_block)
        and (asked.end is not None or state is None or row.from_block <= state.block_number)
        and _overlaps(gap, start, end)
    ]
    newest = max((as_utc(row.to_time) for row in view.ranges if row.to_time), default=None)
    if asked.end is not None and newest is not None and asked.end > newest:
        reason = _reason_after(view)
        if gaps and gaps[-1].reason == reason and gaps[-1].to in (None, newest):
            gaps[-1] = msgspec.structs.replace(gaps[-1], to=asked.end)
        else:
            gaps.append(Gap(from_=newest, to=asked.end, from_block=None, to_block=None, reason=reason))
    clipped = [_clip(gap, start, end) for gap in gaps]
    return Coverage(complete=not clipped, from_=start, to=end, gaps=clipped)


def to_moment_coverage(view: View, state: State | None, status: AsOfStatus) -> Coverage:
    """Return the coverage of a token's view up to a moment; it is complete before the contract was created."""
    if status == "BeforeCreation":
        return Coverage(complete=True, from_=None, to=None, gaps=[])
    return to_coverage(view, state, TimeRange(None, None))


def all_gaps(view: View) -> list[Gap]:
    """Return the gaps of a subject over the whole chain, in order."""
    if not view.ranges or (view.windows and not _has_view(view)):
        return _nothing_in_view(view, TimeRange(None, None)).gaps
    return [gap for _, gap in _gaps(view)]


def covered_range_at(view: View, end: datetime) -> CoverageRow | None:
    """Return the covered range with every block from its first one up to an instant (aware, excluded), or None."""
    bound = as_naive(end)
    for position, row in enumerate(view.ranges):
        if not row.is_covered or row.from_time is None or row.from_time >= bound:
            continue
        until = _held_until(view, position)
        if until is not None and bound <= until:
            return row
    return None


def covered_until(view: View) -> datetime | None:
    """Return the end (aware, excluded) of the newest covered range; None if there is no such range."""
    newest = max((position for position, row in enumerate(view.ranges) if row.is_covered), default=None)
    return None if newest is None else as_utc(_held_until(view, newest))


def _held_until(view: View, position: int) -> datetime | None:
    """Return the exclusive end of a covered range as an instant.

    It is the time of the block after the range. If there was no such block yet, it is just after the last block.
    """
    following = view.ranges[position + 1] if position + 1 < len(view.ranges) else None
    # A window without blocks has no last block, and its start is an instant rather than a block's time.
    if following is not None and following.to_block is not None and following.from_time is not None:
        return following.from_time
    last = view.ranges[position].to_time
    return None if last is None else last + INSTANT


def _current(view: View) -> State | None:
    facts = view.facts
    if facts is None or facts.as_of_block_number is None:
        return None
    newest = _range_with(view, facts.as_of_block_number)
    return State(
        block_number=facts.as_of_block_number,
        block_hash=facts.as_of_block_hash,
        block_time=as_utc(facts.as_of_block_time),
        finality=facts.as_of_finality or "Confirmed",
        first_block=newest.from_block if newest else facts.as_of_block_number,
        is_current=True,
        valued_at=as_utc(facts.as_of_block_time),
    )


def _at_block(snapshot: Snapshot, view: View, number: int) -> State | None:
    covered = _range_with(view, number)
    if covered is None:
        return None
    block = snapshot.row("block", BlockRow, block_number=number, **_stored_for(view))
    return _state(snapshot, view, covered, number, block, as_utc(block.block_time) if block else None)


def _newest_stored(snapshot: Snapshot, view: View, first: int, last: int | None, end: datetime) -> BlockRow | None:
    """Return the newest block of a range before an instant that was stored for the subject's view."""
    return snapshot.row(
        "newest_block_before",
        BlockRow,
        subject_key=view.subject.subject_key,
        first_block=first,
        last_block=last,
        end_time=as_naive(end),
        **_stored_for(view),
    )


def _stored_for(view: View) -> dict[str, Any]:
    """Return the query parameters that select the blocks of the subject's view: network, tenant, tracking windows."""
    return {
        "network": view.subject.network,
        "tenant_id": view.subject.tenant_id,
        "opened_times": [as_naive(window.opened_at) for window in view.windows],
        "closed_times": [as_naive(window.closed_at or _END_OF_TIME) for window in view.windows],
    }


def _state(
    snapshot: Snapshot,
    view: View,
    covered: CoverageRow,
    number: int,
    block: BlockRow | None,
    valued_at: datetime | None,
) -> State:
    tenant_id = view.subject.tenant_id
    heads = snapshot.get_or_compute(
        ("heads", tenant_id), lambda: snapshot.rows("tenant_heads", TenantHeadRow, tenant_id=tenant_id)
    )
    final = next((row.final_number for row in heads if row.network == view.subject.network), None)
    return State(
        block_number=number,
        block_hash=block.block_hash if block else None,
        block_time=as_utc(block.block_time) if block else None,
        finality="Finalized" if final is not None and number <= final else "Confirmed",
        first_block=covered.from_block,
        is_current=False,
        valued_at=valued_at,
    )


def _is_covered(view: View, moment: Moment) -> bool:
    if moment.block_number is not None:
        return _range_with(view, moment.block_number) is not None
    return covered_range_at(view, _end_of(moment)) is not None


def _is_before_creation(view: View, moment: Moment) -> bool:
    """Return whether a moment is known to be before the creation of a token's contract.

    The block of the creation may be known without its time. Then compare times with the start of the first covered
    range, if that range contains the creation.
    """
    created = view.token.created_block_number if view.token else None
    if created is None:
        return False
    if moment.block_number is not None:
        return moment.block_number < created
    first = next((row for row in view.ranges if row.is_covered), None)
    if first is None or first.from_block > created or first.from_time is None:
        return False
    return as_naive(_end_of(moment)) <= first.from_time


def _range_with(view: View, number: int) -> CoverageRow | None:
    for row in view.ranges:
        if row.is_covered and row.to_block is not None and row.from_block <= number <= row.to_block:
            return row
    return None


def _end_of(moment: Moment) -> datetime:
    if moment.end is None:
        raise ValueError("the moment is a block")
    return moment.end


def _not_covered(view: View, moment: Moment) -> ApiError:
    before: list[datetime] = []
    after: list[datetime] = []
    for position, row in enumerate(view.ranges):
        if not row.is_covered:
            continue
        first, last, until = as_utc(row.from_time), as_utc(row.to_time), as_utc(_held_until(view, position))
        if moment.block_number is not None:
            is_before = row.to_block is not None and row.to_block < moment.block_number
        else:
            is_before = last is not None and last < _end_of(moment)
        if is_before and last is not None and until is not None:
            # The next block may have the same second as the last one; that second is then not covered.
            before.append(min(last, until - INSTANT))
        elif not is_before and first is not None:
            after.append(first)
    detail = (
        f"{view.subject.id} is not covered at {moment.text}; request one of the nearest covered instants in "
        "`before` and `after`"
    )
    place = {"pointer": f"/{moment.parameter}"} if moment.is_in_body else {"parameter": moment.parameter}
    return ApiError(
        409,
        "not-covered",
        detail,
        errors=[FieldError(code="not-covered", detail=detail, **place)],
        before=max(before, default=None),
        after=min(after, default=None),
        gaps=_gaps_at(view, moment),
    )


def _gaps_at(view: View, moment: Moment) -> list[Gap]:
    """Return all gaps that may contain a moment, unclipped; there are several if their times are unknown."""
    found = []
    # For a window that closed before its first block, the marts have block numbers, but rarely times.
    is_by_block = moment.block_number is not None and _is_resolved(view)
    gaps = (gap for _, gap in _gaps(view)) if is_by_block or _has_view(view) else _gaps_by_windows(view)
    for gap in gaps:
        if moment.block_number is None:
            end = _end_of(moment)
            is_in = _overlaps(gap, end - INSTANT, end)
        else:
            first = 0 if gap.from_block is None else gap.from_block
            is_in = first <= moment.block_number and (gap.to_block is None or gap.to_block >= moment.block_number)
        if is_in:
            found.append(gap)
    if found:
        return found
    newest = max((as_utc(row.to_time) for row in view.ranges if row.to_time), default=None)
    return [Gap(from_=newest, to=None, from_block=None, to_block=None, reason=_reason_after(view))]


def _has_view(view: View) -> bool:
    """Return whether a version has a block that is or will be collected for the subject."""
    return any(_is_in_view(row) for row in view.ranges)


def _is_resolved(view: View) -> bool:
    """Return whether a version has the block at which tracking ended."""
    return any(row.reason == "TrackingDisabled" for row in view.ranges)


def _is_in_view(row: CoverageRow) -> bool:
    return row.is_covered or row.reason in ("NotYetCollected", "ProviderFailed")


def _nothing_in_view(view: View, asked: TimeRange) -> Coverage:
    """Return the coverage of an empty answer, for a subject without blocks to collect in this version."""
    start, opened_at = asked.start, view.windows[0].opened_at if view.windows else None
    if start is None and opened_at is not None and (asked.end is None or opened_at < asked.end):
        start = opened_at
    gaps = [_clip(gap, start, asked.end) for gap in _gaps_by_windows(view) if _overlaps(gap, start, asked.end)]
    return Coverage(complete=False, from_=start, to=asked.end, gaps=gaps)


def _gaps_by_windows(view: View) -> list[Gap]:
    """Return the gaps of a subject without covered blocks over all time, from its tracking windows.

    The control store has new windows earlier than the marts. If the marts have a window but no range of it, the window
    closed before its first block.
    """
    if not view.windows:
        return [Gap(from_=None, to=None, from_block=None, to_block=None, reason="NeverTracked")]
    is_resolved = _is_resolved(view)
    found: list[Gap] = []

    def add(start: datetime | None, end: datetime | None, reason: GapReason) -> None:
        if start is None or start != end:
            found.append(Gap(from_=start, to=end, from_block=None, to_block=None, reason=reason))

    reached: datetime | None = view.windows[0].opened_at
    add(None, reached, "BeforeTracking")
    for window in view.windows:
        if window.closed_at is None or (window.closed_at > window.opened_at and not is_resolved):
            add(reached, window.opened_at, "TrackingDisabled")
            add(window.opened_at, window.closed_at, "NotYetCollected")
            reached = window.closed_at
    if reached is not None:
        add(reached, None, "TrackingDisabled")
    return found


def _reason_after(view: View) -> GapReason:
    """Return the reason of the gap after the newest block of the marts."""
    if view.subject.is_tracked:
        return "NotYetCollected"
    return "TrackingDisabled" if view.windows else "NeverTracked"


def _gaps(view: View) -> Iterator[tuple[CoverageRow, Gap]]:
    """Yield the gaps of a subject in order, `from` <= t < `to`.

    A gap ends at the start of the next range. If the block of a bound is not stored, the bound is the nearest known
    instant outside the gap, so that the gap contains all missing blocks. A window that the chain has not reached yet
    has no last block. If it is closed already, the gap is split at its end: nothing will be collected after it.
    """
    closed_at = (
        None if view.subject.is_tracked else max((one.closed_at for one in view.windows if one.closed_at), default=None)
    )
    for position, row in enumerate(view.ranges):
        if row.is_covered:
            continue
        earlier = (time for other in reversed(view.ranges[:position]) for time in (other.to_time, other.from_time))
        later = (time for other in view.ranges[position + 1 :] for time in (other.from_time, other.to_time))
        first = row.from_time or next((time for time in earlier if time), None)
        last = next((time for time in later if time), None) or row.to_time
        gap = Gap(
            from_=as_utc(first),
            to=as_utc(last),
            from_block=row.from_block,
            to_block=row.to_block,
            reason=row.reason or "NotYetCollected",
        )
        if row.to_block is None and gap.reason == "NotYetCollected" and closed_at is not None:
            gap = msgspec.structs.replace(gap, to=closed_at)
            yield row, gap
            gap = msgspec.structs.replace(gap, from_=closed_at, to=None, from_block=None, reason="TrackingDisabled")
        yield row, gap


def _overlaps(gap: Gap, start: datetime | None, end: datetime | None) -> bool:
    is_earlier = gap.to is not None and start is not None and gap.to <= start
    is_later = gap.from_ is not None and end is not None and gap.from_ >= end
    return not is_earlier and not is_later


def _clip(gap: Gap, start: datetime | None, end: datetime | None) -> Gap:
    first = gap.from_ if start is None or (gap.from_ is not None and gap.from_ > start) else start
    last = gap.to if end is None or (gap.to is not None and gap.to < end) else end
    return msgspec.structs.replace(gap, from_=first, to=last)
