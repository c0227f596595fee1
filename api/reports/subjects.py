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
class ReportSubject:
    """The subject of a report: its tracking windows, the tenant's links, display name and explorer of its network."""

    subject: SubjectRow
    windows: Sequence[subjects.Window]
    links: LinksInForce
    network_display_name: str
    explorer: str | None


def find_token(call: EmbedCall) -> ReportSubject:
    """Return the token of a report.

    Raises:
        NotFound: the token was removed.
    """
    with call.store.read() as session:
        return _found(call, session, tokens.get(session, call.tenant_id, call.params["tokenId"]))


def to_report_token(found: ReportSubject, decimals: int | None) -> ReportToken:
    """Convert the token to the struct of its reports."""
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


def find_wallet(call: EmbedCall) -> ReportSubject:
    """Return the wallet of an activity report.

    Raises:
        NotFound: the wallet was removed.
    """
    with call.store.read() as session:
        return _found(call, session, wallets.get(session, call.tenant_id, call.params["walletId"]))


def days(view: View, state: State, asked: TimeRange, most: int) -> list[Bucket]:
    """Return at most `most` days of a range, oldest first: the last ones between the first covered day and a moment."""
    newest = state.valued_at
    if newest is None:
        return []
    first = next(covered_starts(view), newest)
    end = asked.end if asked.end is not None and asked.end <= newest else newest
    last_day = end.replace(hour=0, minute=0, second=0, microsecond=0)
    start = max(asked.start or first, days_before(last_day, most - 1))
    return read_buckets(view, state, TimeRange(start, asked.end), "1d")[-most:]


def whole_view(view: View, state: State, most: int) -> tuple[Interval, list[Bucket]]:
    """Return the intervals from the first covered moment to `state`: days, or longer ones above `most` days."""
    newest = state.valued_at
    if newest is None:
        return "1d", []
    first = next(covered_starts(view), newest)
    days_of = (newest.date() - first.date()).days + 1
    # Partial days and weeks count, too.
    interval: Interval = "1d" if days_of <= most else "1w" if days_of // 7 + 2 <= most else "1M"
    return interval, read_buckets(view, state, TimeRange(first, None), interval)


def covered_starts(view: View) -> Iterator[datetime]:
    """Yield the start times of covered ranges, oldest first; skip ranges with an unknown time."""
    for row in view.ranges:
        if row.is_covered and row.from_time is not None:
            yield as_utc(row.from_time)


def _found(call: EmbedCall, session: Session, subject: SubjectRow) -> ReportSubject:
    network = call.services.networks.get(subject.network)
    return ReportSubject(
        subject,
        subjects.windows(session, subject.subject_key),
        call.services.links_in_force(session, call.tenant_id),
        network.display_name if network else subject.network,
        network.explorer if network else None,
    )
