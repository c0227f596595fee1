"""Head and charts of a cap table report: figures, shares, and holders over time."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from api.engine.rows import as_naive, as_utc
from api.engine.serving import Snapshot
from api.http.parameters import read_moment
from api.reports.calls import EmbedCall
from api.reports.holders import HolderFilters, Holders
from api.reports.parts import keep
from api.reports.rows import HolderDayRow, ReconciliationRow
from api.reports.schemas.report_data import (
    CapTableReport,
    CurvePoint,
    HoldersAtEnd,
    LargestHolder,
    ReconciliationCounts,
)
from api.reports.subjects import ReportSubject, find_token, to_report_token, whole_view
from api.schema import Interval
from api.subjects.moments import State, View, read_view, resolve_of_token, to_as_of, to_moment_coverage
from api.subjects.names import Names
from api.tokens import capitalization
from api.tokens.cap_table import to_concentration, to_unattributed
from api.tokens.holders import HolderSet
from api.tokens.reading import to_holder_count_status
from api.tokens.rows import HolderRow
from api.values.reading import CURRENCY, Valuation, price_status, read_link, value_quantities
from api.values.schemas import CapitalizationStatus
from control.networks.families import codec_for
from control.subjects import SubjectRow, Window
from figures.numbers import quotient

MOST_POINTS = 400  # largest number of points in a chart: a year of days, or seven years of weeks
_LARGEST = 10


@dataclass(frozen=True, slots=True)
class _Parts:
    """Parts of a report that depend only on the rows of a version, not on the tenant's names of holders."""

    reconciliation: ReconciliationCounts
    largest: Sequence[HolderRow]
    curve: list[CurvePoint]
    holders_interval: Interval
    holders_over_time: list[HoldersAtEnd]


def open_holders(call: EmbedCall, snapshot: Snapshot) -> tuple[ReportSubject, Holders]:
    """Return the report's token and its holders at the report's moment.

    Raises:
        NotFound: the token was removed.
        ApiError: 409, the report's moment is not covered.
    """
    found = find_token(call)
    view = read_view(snapshot, found.subject, found.windows)
    state, status = resolve_of_token(snapshot, view, read_moment(call.params.get("asOf"), call.begun))
    return found, Holders(snapshot, view, state, status, Names(call.store, found.subject))


def read_report(snapshot: Snapshot, found: ReportSubject, holders: Holders) -> CapTableReport:
    """Return the head and the charts of a cap table report."""
    view, state, summary, subject = holders.view, holders.state, holders.summary, found.subject
    parts = _read_parts(snapshot, holders)
    price = _read_worth(snapshot, view, state, summary.supply.whole)
    link, as_of = read_link(snapshot, subject), to_as_of(view, state, snapshot)
    is_current = holders.status == "NothingCovered" if state is None else state.is_current
    if is_current:
        current = capitalization.current(snapshot, view, state, as_of)
        told, status = (current.price, current.price_status), (current.value, current.value_status)
    else:
        valued_at = state.valued_at if state else None
        told = (price.price.price if price.price else None), price_status(link, price.price, valued_at)
        is_known = summary.supply.raw is not None
        status = price.value, summary.supply.value_status(price.status) if is_known else _UNKNOWN_SUPPLY
    return CapTableReport(
        token=to_report_token(found, view.decimals),
        currency=CURRENCY,
        price=told[0],
        price_status=told[1],
        price_effective_from=as_utc(price.price.effective_from) if price.price and told[0] is not None else None,
        is_current=is_current,
        as_of=as_of,
        as_of_status=holders.status,
        coverage=to_moment_coverage(view, state, holders.status),
        reconciliation=parts.reconciliation,
        total_supply=summary.supply.shown,
        total_supply_status=summary.supply.status,
        holder_count=summary.holder_count,
        holder_count_status=to_holder_count_status(summary),
        holders_status=summary.holders_status,
        market_capitalization=status[0],
        market_capitalization_status=status[1],
        unattributed=to_unattributed(summary),
        concentration=to_concentration(summary),
        largest=_to_largest(holders, parts.largest),
        curve=parts.curve,
        holders_interval=parts.holders_interval,
        holders_over_time=parts.holders_over_time,
        data_version=snapshot.data_version(subject.tenant_id),
    )


_UNKNOWN_SUPPLY: CapitalizationStatus = "UnknownSupply"
_NO_COUNTS = ReconciliationCounts(reconciled=None, adjusted=None, unchecked=None, status="NotYetCollected")


def _read_parts(snapshot: Snapshot, holders: Holders) -> _Parts:
    state, view = holders.state, holders.view
    if state is None or holders.summary.holder_count is None:
        return _Parts(_NO_COUNTS, [], [], "1d", [])

    def read() -> _Parts:
        counts = HolderSet(snapshot, view, state).query("holder_reconciliations", ReconciliationRow)
        return _Parts(
            _to_counts(counts),
            holders.rows(HolderFilters(), _LARGEST, 0),
            _to_curve(holders),
            *_holders_over_time(snapshot, view, state),
        )

    subject = view.subject
    if state.is_current:
        asked = ("cap-table-report", subject.subject_key, subject.tenant_id)
        windows, names = view.windows, holders.names
        snapshot.warm(asked, lambda later: _read_newest(later, subject, windows, names))
    key = ("cap-table", subject.subject_key, subject.tenant_id, state.block_number, state.first_block, state.valued_at)
    return keep(snapshot, key, read)


def _read_newest(snapshot: Snapshot, subject: SubjectRow, windows: Sequence[Window], names: Names) -> None:
    """Read the first view of a report of the newest block, to warm the cache."""
    view = read_view(snapshot, subject, windows)
    holders = Holders(snapshot, view, *resolve_of_token(snapshot, view, None), names)
    _read_parts(snapshot, holders)
    holders.page(HolderFilters(), 1, 0)


def _read_worth(snapshot: Snapshot, view: View, state: State | None, supply: str | None) -> Valuation:
    link, moment = read_link(snapshot, view.subject), state.valued_at if state else None

    def read() -> Valuation:
        return value_quantities(snapshot, view.subject.tenant_id, [(supply, link, moment)])[0]

    return snapshot.get_or_compute(("supply-worth", view.subject.subject_key, link, moment), read)


def _to_counts(rows: Sequence[ReconciliationRow]) -> ReconciliationCounts:
    counts = {row.reconciliation: row.holder_count for row in rows}
    return ReconciliationCounts(
        reconciled=counts.get("Reconciled", 0),
        adjusted=counts.get("Adjusted", 0),
        unchecked=counts.get("Unchecked", 0),
        status="Counted",
    )


def _to_curve(holders: Holders) -> list[CurvePoint]:
    supply = holders.summary.supply.base_units or 0
    if supply <= 0:
        return []
    return [
        CurvePoint(holders=rank, percentage=quotient(100 * held, supply)) for rank, held in holders.summary.held_by_rank
    ]


def _to_largest(holders: Holders, rows: Sequence[HolderRow]) -> list[LargestHolder]:
    labels = holders.names.of([row.holder_address for row in rows])
    present = codec_for(holders.view.subject.family).present
    return [
        LargestHolder(
            rank=row.rank,
            wallet=present(row.holder_address),
            name=labels[row.holder_address].name,
            quantity=row.quantity,
            percentage=row.percentage,
            percentage_status=holders.summary.supply.figure_status,
        )
        for row in rows
    ]


def _holders_over_time(snapshot: Snapshot, view: View, state: State) -> tuple[Interval, list[HoldersAtEnd]]:
    """Return the number of holders at the end of each interval; each covered range has its own counts."""
    interval, buckets = whole_view(view, state, MOST_POINTS)
    if state.valued_at is None:
        return interval, []
    rows = snapshot.rows(
        "report_holders_by_day",
        HolderDayRow,
        **view.keys,
        last_block=state.block_number,
    )
    known: dict[int, tuple[list[datetime], list[int]]] = {}
    for row in rows:
        begun, counts = known.setdefault(row.range_from_block, ([], []))
        begun.append(row.day)
        counts.append((counts[-1] if counts else 0) + row.holder_change)
    found: list[HoldersAtEnd] = []
    for bucket in buckets:
        count = None
        if bucket.first_block is not None:
            begun, counts = known.get(bucket.first_block, ([], []))
            place = bisect_left(begun, as_naive(bucket.end))
            count = counts[place - 1] if place else 0
        found.append(
            HoldersAtEnd(
                from_=bucket.start,
                to=bucket.end,
                at=bucket.at,
                holder_count=count,
                holder_count_status="NotCovered" if count is None else "Counted",
                is_complete=bucket.is_complete,
            )
        )
    return interval, found
