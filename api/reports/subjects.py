"""The token or wallet of a report."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from api.engine.rows import as_utc
from api.http.parameters import TimeRange
from api.reports.calls import EmbedCall
from api.reports.schemas.report_data import ReportToken
from api.schema import Interval
from api.subjects.buckets import Bucket, read_buckets
from api.subjects.intervals import days_before
from api.subjects.moments import State, View
from control import subjects, tokens, wallets
from control.pricing.links import LinksInForce
from control.subjects import SubjectRow


@dataclass(frozen=True, slots=True)
class Found:
    """The subject of a report: its windows, the tenant's links, how people call its network, where they look at it."""

    subject: SubjectRow
    windows: Sequence[subjects.Window]
    links: LinksInForce
    network_display_name: str
    explorer: str | None


def find_token(call: EmbedCall) -> Found:
    """Return the token that a report is of.

    Raises:
        NotFound: it was removed.
    """
    with call.store.read() as session:
        return _found(call, session, tokens.get(session, call.tenant_id, call.params["tokenId"]))


def to_report_token(found: Found, decimals: int | None) -> ReportToken:
    """Return the token as its reports name it."""
    subject = found.subject
    return ReportToken(
        id=subject.id,
        name=subject.name,
        symbol=subject.symbol or "",
        ledger=subject.ledger_name,
        network=subject.network,
        network_display_name=found.network_display_name,
        explorer=found.explorer,
        ledger_id=subject.presented_address,
        decimals=decimals,
    )


def find_wallet(call: EmbedCall) -> Found:
    """Return the wallet that an activity report is of.

    Raises:
        NotFound: it was removed.
    """
    with call.store.read() as session:
        return _found(call, session, wallets.get(session, call.tenant_id, call.params["walletId"]))


def days(view: View, state: State, asked: TimeRange, most: int) -> list[Bucket]:
    """Return the last days, `most` at most, of what is covered in a range, up to a moment, oldest first."""
    newest = state.valued_at
    if newest is None:
        return []
    first = next(covered_starts(view), newest)
    end = asked.end if asked.end is not None and asked.end <= newest else newest
    last_day = end.replace(hour=0, minute=0, second=0, microsecond=0)
    start = max(asked.start or first, days_before(last_day, most - 1))
    return read_buckets(view, state, TimeRange(start, asked.end), "1d")[-most:]


def whole_view(view: View, state: State, most: int) -> tuple[Interval, list[Bucket]]:
    """Return all that is covered up to a moment, by days; by weeks, then months, where those are more than `most`."""
    newest = state.valued_at
    if newest is None:
        return "1d", []
    first = next(covered_starts(view), newest)
    days_of = (newest.date() - first.date()).days + 1
    # Days and weeks that a view has only a part of count as well.
    interval: Interval = "1d" if days_of <= most else "1w" if days_of // 7 + 2 <= most else "1M"
    return interval, read_buckets(view, state, TimeRange(first, None), interval)


def covered_starts(view: View) -> Iterator[datetime]:
    """Yield the times at which covered ranges begin, oldest first; of some the time is not known."""
    for row in view.ranges:
        if row.is_covered and row.from_time is not None:
            yield as_utc(row.from_time)


def _found(call: EmbedCall, session: Session, subject: SubjectRow) -> Found:
    network = call.services.networks.get(subject.network)
    return Found(
        subject,
        subjects.windows(session, subject.subject_key),
        call.services.links_in_force(session, call.tenant_id),
        network.display_name if network else subject.network,
        network.explorer if network else None,
    )
