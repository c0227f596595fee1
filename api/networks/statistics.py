"""Statistics of a ledger: its tokens and wallets, progress of the collection, and activities by interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from api.engine.rows import as_naive, as_utc
from api.engine.serving import Snapshot
from api.http.parameters import TimeRange
from api.networks.rows import MissingRow, NetworkRow, NewestRow, StatisticsRow
from api.networks.schemas import CollectedBlock, LagStatus, LedgerPoint, LedgerStatistics, LedgerTotals
from api.schema import DataVersion, Interval
from api.subjects.intervals import UNITS, bounds, intervals, label
from control.models import Ledger, Subject, TrackingWindow
from control.networks.families import NOBODIES
from control.subjects import Kind


@dataclass(frozen=True, slots=True)
class Members:
    """Subject keys of the tokens and wallets of a ledger; `tracked` are the keys with enabled tracking."""

    tokens: frozenset[int]
    wallets: frozenset[int]
    tracked: frozenset[int]

    @property
    def all(self) -> list[int]:
        """Every key, in order."""
        return sorted(self.tokens | self.wallets)


def read_members(session: Session, ledger: Ledger) -> Members:
    """Read the present tokens and wallets of a ledger."""
    is_tracked = exists().where(TrackingWindow.subject_key == Subject.subject_key, TrackingWindow.closed_at.is_(None))
    query = select(Subject.subject_key, Subject.kind, is_tracked).where(
        Subject.ledger_id == ledger.id, Subject.removed_at.is_(None)
    )
    rows = session.execute(query).all()
    return Members(
        frozenset(key for key, kind, _ in rows if kind == Kind.TOKEN),
        frozenset(key for key, kind, _ in rows if kind == Kind.WALLET),
        frozenset(key for key, _, tracked in rows if tracked),
    )


def read_statistics(
    snapshot: Snapshot, ledger: Ledger, members: Members, asked: TimeRange, interval: Interval
) -> LedgerStatistics:
    """Return the statistics of a ledger.

    Args:
        snapshot: the version.
        ledger: the ledger.
        members: its tokens and wallets.
        asked: the range; by default it ends at the newest known block, and begins 30 days before its end.
        interval: length of the intervals; they begin on whole UTC hours, days, Mondays or months.

    Raises:
        ApiError: 422, the range has more than 10,000 intervals.
    """
    keys = {"tenant_id": ledger.tenant_id, "subject_keys": members.all}
    networks = snapshot.get_or_compute(("networks",), lambda: snapshot.rows("networks", NetworkRow))
    head = next((row for row in networks if row.network == ledger.network), None)
    collected = snapshot.row("newest_collected", NewestRow, **keys)
    times = [head.head_time if head else None, collected.block_time if collected else None]
    newest = max((as_utc(time) for time in times if time), default=None)
    rows: dict[datetime | None, StatisticsRow] = {}
    series: list[LedgerPoint] = []
    start, end = asked.start, asked.end
    if newest is not None:
        start, end = bounds(asked, newest)
        spans = intervals(start, end, newest, interval)
        found = snapshot.rows(
            "statistics_activities",
            StatisticsRow,
            **keys,
            from_time=as_naive(start),
            to_time=as_naive(end),
            unit=UNITS[interval],
            nobodies=NOBODIES,
        )
        rows = {as_utc(row.bucket): row for row in found}
        missing = snapshot.rows("statistics_gaps", MissingRow, **keys, tracked_keys=sorted(members.tracked))
        series = [
            _point(
                (begin, finish),
                interval,
                rows.get(begin),
                is_complete=_is_complete(begin, finish, start, end, newest, missing),
            )
            for begin, finish in spans
        ]
    total = rows.get(None)
    lag, status = _lag(members, head, collected)
    return LedgerStatistics(
        ledger=ledger.name,
        network=ledger.network,
        from_=start,
        to=end,
        interval=interval,
        totals=LedgerTotals(
            tokens=len(members.tokens),
            wallets=len(members.wallets),
            tracked_tokens=len(members.tokens & members.tracked),
            tracked_wallets=len(members.wallets & members.tracked),
            activities=total.token_activities + total.wallet_activities if total else 0,
            active_wallets=total.active_wallets if total else 0,
            newest_block=CollectedBlock(number=collected.block_number, time=as_utc(collected.block_time))
            if collected
            else None,
            head_block=head.head_number if head else None,
            lag_seconds=lag,
            lag_status=status,
        ),
        series=series,
        as_of=DataVersion(data_version=snapshot.data_version(ledger.tenant_id)),
    )


def _point(
    span: tuple[datetime, datetime], interval: Interval, row: StatisticsRow | None, *, is_complete: bool
) -> LedgerPoint:
    token_activities = row.token_activities if row else 0
    wallet_activities = row.wallet_activities if row else 0
    return LedgerPoint(
        date=label(span[0], interval),
        from_=span[0],
        to=span[1],
        activities=token_activities + wallet_activities,
        active_wallets=row.active_wallets if row else 0,
        token_activities=token_activities,
        wallet_activities=wallet_activities,
        is_complete=is_complete,
    )


def _is_complete(
    begin: datetime, finish: datetime, start: datetime, end: datetime, newest: datetime, missing: Sequence[MissingRow]
) -> bool:
    if begin < start or finish > end or finish > newest:
        return False
    first, last = as_naive(begin), as_naive(finish)
    return not any(
        (row.from_time is None or row.from_time < last) and (row.to_time is None or row.to_time > first)
        for row in missing
    )


def _lag(members: Members, head: NetworkRow | None, collected: NewestRow | None) -> tuple[int | None, LagStatus]:
    if not members.tracked:
        return None, "NothingTracked"
    if collected is None or collected.block_time is None:
        return None, "NotYetCollected"
    if head is None or head.head_time is None:
        return None, "HeadUnknown"
    # Never negative: a node may report an older head than before.
    return max(0, int((head.head_time - collected.block_time).total_seconds())), "Known"
