"""Head and charts of a wallet activity report: value over time, flows, activities by day, balances."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from msgspec.structs import asdict

from api.activities.reading import FIRST_TIME, LAST_TIME, to_reference
from api.activities.schemas import WalletActivityType
from api.engine.rows import as_naive, as_utc
from api.engine.serving import Snapshot
from api.http.parameters import Moment, TimeRange, read_range
from api.reports.activities import Activities, ActivityFilters, places_of
from api.reports.calls import EmbedCall
from api.reports.parts import keep
from api.reports.rows import LeftOutRow, WalletAssetRow, WalletDayRow, WalletExtentRow
from api.reports.schemas.report_data import (
    Flows,
    FlowStatus,
    LeftOut,
    ReconciliationCounts,
    ReportPosition,
    ReportRange,
    ReportWallet,
    TimelinePoint,
    WalletActivityReport,
)
from api.reports.subjects import ReportSubject, days, find_wallet
from api.schema import Coverage, Decimal, TokenReference, ValueStatus
from api.subjects.intervals import label
from api.subjects.moments import (
    State,
    View,
    covered_range_at,
    read_view,
    resolve,
    resolve_covered,
    to_as_of,
    to_coverage,
)
from api.subjects.names import Names
from api.values.reading import CURRENCY, amount_text, read_links, total_status
from api.values.rows import WalletTotalRow
from api.values.schemas import WalletChangeStatus, WalletValuePoint
from api.wallets import balances
from api.wallets import values as wallet_values
from api.wallets.schemas import Position
from api.wallets.totals import change_between, positions_before, read_total, total_of

_MOST_DAYS = 366
_VALUE_DECIMALS = 18


@dataclass(frozen=True, slots=True)
class WalletView:
    """The wallet of a report in one version, with its range; `state` is the moment of the balances, or None."""

    found: ReportSubject
    view: View
    current: State | None
    state: State | None
    times: TimeRange
    activities: Activities

    @property
    def is_current(self) -> bool:
        """True if the report ends at the newest covered block."""
        return self.state is None or self.state.is_current


@dataclass(frozen=True, slots=True)
class _Parts:
    """Parts of a report that depend only on the rows of a version."""

    positions: list[ReportPosition]
    total: WalletTotalRow
    value_history: list[WalletValuePoint]
    timeline: list[TimelinePoint]
    flows: Flows
    activity_count: int
    folded_fee_count: int
    extent: WalletExtentRow
    tokens: list[TokenReference]
    types: list[WalletActivityType]


_NOTHING = _Parts(
    positions=[],
    total=WalletTotalRow(0, None, "NotCovered", False, [], None, "NotCovered", []),
    value_history=[],
    timeline=[],
    flows=Flows(in_=None, out=None, net=None, status="NotCovered", is_complete=False, left_out=[]),
    activity_count=0,
    folded_fee_count=0,
    extent=WalletExtentRow(0, None),
    tokens=[],
    types=[],
)


def open_wallet(call: EmbedCall, snapshot: Snapshot) -> WalletView:
    """Return the report's wallet with its range.

    Raises:
        NotFound: the wallet was removed.
    """
    found = find_wallet(call)
    times = read_range(call.params.get("from"), call.params.get("to"))
    return _open(snapshot, found, times, Names(call.store, found.subject))


def _open(snapshot: Snapshot, found: ReportSubject, times: TimeRange, names: Names) -> WalletView:
    view = read_view(snapshot, found.subject, found.windows, found.links)
    current = resolve(snapshot, view, None)
    state = _state_at_end(snapshot, view, current, times)
    return WalletView(found, view, current, state, times, Activities(snapshot, view, names))


def read_report(snapshot: Snapshot, wallet: WalletView) -> WalletActivityReport:
    """Return the head and the charts of a wallet activity report."""
    subject, view, state = wallet.found.subject, wallet.view, wallet.state
    coverage = to_coverage(view, state, wallet.times)
    parts = _read_parts(snapshot, wallet, coverage)
    if wallet.is_current:
        asked = ("wallet-report", subject.subject_key, subject.tenant_id, wallet.times)
        found, times, names = wallet.found, wallet.times, wallet.activities.names
        snapshot.warm(asked, lambda later: _read_newest(later, found, times, names))
    return WalletActivityReport(
        wallet=ReportWallet(
            id=subject.id,
            name=subject.name,
            ledger=subject.ledger_name,
            network=subject.network,
            network_display_name=wallet.found.network_display_name,
            explorer=wallet.found.explorer,
            ledger_id=subject.presented_address,
        ),
        currency=CURRENCY,
        range=ReportRange(from_=coverage.from_, to=coverage.to),
        is_current=wallet.is_current,
        as_of=to_as_of(view, state, snapshot),
        coverage=coverage,
        holdings_complete=balances.is_complete(state),
        holdings_from=_holdings_from(view, state),
        reconciliation=_to_counts(state, parts.positions),
        total_value=parts.total.total_value,
        total_value_status=parts.total.total_value_status,
        value_complete=parts.total.value_complete,
        unpriced=parts.total.unpriced,
        change24h=parts.total.change24h,
        change24h_status=parts.total.change24h_status,
        change24h_omitted=parts.total.change24h_omitted,
        activity_count=parts.activity_count,
        folded_fee_count=parts.folded_fee_count,
        counterparty_count=parts.extent.counterparty_count,
        last_activity_at=as_utc(parts.extent.last_time),
        flows=parts.flows,
        value_history=parts.value_history,
        timeline=parts.timeline,
        balances=parts.positions,
        tokens=parts.tokens,
        types=parts.types,
        data_version=snapshot.data_version(subject.tenant_id),
    )


def _read_newest(snapshot: Snapshot, found: ReportSubject, times: TimeRange, names: Names) -> None:
    """Read the first view of the report, to warm the cache."""
    wallet = _open(snapshot, found, times, names)
    _read_parts(snapshot, wallet, to_coverage(wallet.view, wallet.state, wallet.times))
    wallet.activities.page(ActivityFilters(wallet.times, folds_fees=True), 1, 0)


def _state_at_end(snapshot: Snapshot, view: View, current: State | None, times: TimeRange) -> State | None:
    """Return the newest covered state before the end of the range, even if the end itself lies in a gap."""
    if current is None or times.end is None:
        return current
    if covered_range_at(view, times.end) is not None:
        return resolve_covered(snapshot, view, Moment("to", f"{times.end}", end=times.end))
    if current.valued_at is not None and current.valued_at < times.end:
        return current
    bound = as_naive(times.end)
    earlier = [row.to_block for row in view.ranges if row.is_covered and row.to_time and row.to_time < bound]
    blocks = [block for block in earlier if block is not None]
    if not blocks:
        return None
    return resolve_covered(snapshot, view, Moment("to", f"block:{max(blocks)}", block_number=max(blocks)))


def _read_parts(snapshot: Snapshot, wallet: WalletView, coverage: Coverage) -> _Parts:
    state, view, times = wallet.state, wallet.view, wallet.times
    if state is None:
        return _NOTHING

    def read() -> _Parts:
        rows = _read_days(snapshot, view, times)
        positions = balances.positions(snapshot, view, state)
        earlier, missing = positions_before(snapshot, view, state)
        now = read_total(snapshot, view) if state.is_current else None
        return _Parts(
            positions=_with_changes(positions, earlier, missing),
            total=now or total_of(view, positions, earlier, missing),
            value_history=_value_history(snapshot, wallet),
            timeline=_to_timeline(rows),
            flows=_to_flows(rows, _read_left_out(snapshot, view, times), is_covered=coverage.complete),
            activity_count=sum(row.activity_count for row in rows),
            folded_fee_count=sum(row.folded_count for row in rows),
            extent=_read_extent(snapshot, view, times),
            tokens=_read_tokens(snapshot, view, times),
            types=sorted({row.activity_type for row in rows}),
        )

    links = read_links(snapshot, view)
    asked = (times, state.block_number, coverage.complete, links.unlinked, links.relinked)
    key = ("wallet", view.subject.subject_key, view.subject.tenant_id, *asked)
    return keep(snapshot, key, read)


def _with_changes(
    positions: Sequence[Position], earlier: Sequence[Position] | None, missing: WalletChangeStatus
) -> list[ReportPosition]:
    before = {one.token.ledger_id: one for one in earlier or ()}
    found: list[ReportPosition] = []
    for one in positions:
        change, status = None, missing
        if earlier is not None:
            then = before.get(one.token.ledger_id)
            change, status, _ = change_between([one], [then] if then else [])
        found.append(ReportPosition(**asdict(one), change24h=change, change24h_status=status))
    return found


def _value_history(snapshot: Snapshot, wallet: WalletView) -> list[WalletValuePoint]:
    current = wallet.current
    if current is None:
        return []
    shown = days(wallet.view, current, wallet.times, _MOST_DAYS)
    if not shown:
        return []
    asked = TimeRange(shown[0].start, wallet.times.end)
    return wallet_values.history(snapshot, wallet.view, current, asked, "1d")


def _read_days(snapshot: Snapshot, view: View, times: TimeRange) -> list[WalletDayRow]:
    return snapshot.rows_over(
        {"places": places_of(snapshot, view)}, "report_wallet_days", WalletDayRow, **_bounds(times)
    )


def _read_left_out(snapshot: Snapshot, view: View, times: TimeRange) -> list[LeftOut]:
    present = view.subject.present
    rows = snapshot.rows_over(
        {"places": places_of(snapshot, view)},
        "report_wallet_left_out",
        LeftOutRow,
        tenant_id=view.subject.tenant_id,
        **_bounds(times),
    )
    return [
        LeftOut(
            token=to_reference(present, row.token_address, row.token_symbol, row.token_id),
            status=row.value_status,
            count=row.activity_count,
            priced_from=as_utc(row.priced_from),
        )
        for row in rows
    ]


def _read_extent(snapshot: Snapshot, view: View, times: TimeRange) -> WalletExtentRow:
    return snapshot.rows("report_wallet_extent", WalletExtentRow, **_conditions(view, times))[0]


def _read_tokens(snapshot: Snapshot, view: View, times: TimeRange) -> list[TokenReference]:
    present = view.subject.present
    rows = snapshot.rows("report_wallet_assets", WalletAssetRow, **_conditions(view, times))
    return [to_reference(present, row.token_address, row.token_symbol, row.token_id) for row in rows]


def _conditions(view: View, times: TimeRange) -> dict[str, object]:
    return {
        "subject_key": view.subject.subject_key,
        "tenant_id": view.subject.tenant_id,
        **_bounds(times),
    }


def _bounds(times: TimeRange) -> dict[str, object]:
    return {"from_time": as_naive(times.start or FIRST_TIME), "to_time": as_naive(times.end or LAST_TIME)}


def _holdings_from(view: View, state: State | None) -> datetime | None:
    """Return the start of the covered range that contains a moment."""
    if state is None:
        return None
    return as_utc(next((row.from_time for row in view.ranges if row.from_block == state.first_block), None))


def _to_timeline(rows: Sequence[WalletDayRow]) -> list[TimelinePoint]:
    """Return the last days by kind; the rows are sorted by day and kind."""
    if not rows:
        return []
    first = rows[-1].day - timedelta(days=_MOST_DAYS - 1)
    points: list[TimelinePoint] = []
    for (day, kind), group in groupby(rows, key=lambda row: (row.day, row.activity_type)):
        if day < first:
            continue
        found = list(group)
        value, status = _value_of(found)
        points.append(
            TimelinePoint(
                date=label(day, "1d"),
                type=kind,
                count=sum(row.activity_count for row in found),
                folded_count=sum(row.folded_count for row in found),
                value=value,
                value_status=status,
                value_complete=not any(row.statuses_without_value for row in found),
                value_in=None if value is None else amount_text(_units_moved(found, "In"), _VALUE_DECIMALS),
                value_out=None if value is None else amount_text(_units_moved(found, "Out"), _VALUE_DECIMALS),
            )
        )
    return points


def _to_flows(rows: Sequence[WalletDayRow], left_out: list[LeftOut], *, is_covered: bool) -> Flows:
    moved = [row for row in rows if row.direction is not None]
    status = _value_of(moved)[1]
    if status != "Priced":
        return Flows(in_=None, out=None, net=None, status=status, is_complete=False, left_out=left_out)
    received, sent = (_units_moved(moved, direction) for direction in ("In", "Out"))
    return Flows(
        in_=amount_text(received, _VALUE_DECIMALS),
        out=amount_text(sent, _VALUE_DECIMALS),
        net=amount_text(received - sent, _VALUE_DECIMALS),
        status=status,
        is_complete=is_covered and not left_out,
        left_out=left_out,
    )


def _value_of(rows: Sequence[WalletDayRow]) -> tuple[Decimal | None, FlowStatus]:
    """Return the sum of all known values, with its status; as for wallets, the sum of no activities is zero."""
    statuses = [status for row in rows for status in row.statuses_without_value]
    known: list[ValueStatus] = [status for status in statuses if status != "UnknownAmount"]
    if any(row.valued_count for row in rows):
        known.append("Priced")
    if statuses and not known:
        return None, "UnknownAmount"
    status = total_status(known)
    return (amount_text(sum(map(_units_of, rows)), _VALUE_DECIMALS) if status == "Priced" else None), status


def _units_moved(rows: Sequence[WalletDayRow], direction: str) -> int:
    return sum(_units_of(row) for row in rows if row.direction == direction)


def _units_of(row: WalletDayRow) -> int:
    return int(row.value_units or 0)


def _to_counts(state: State | None, positions: Iterable[Position]) -> ReconciliationCounts:
    if state is None:
        return ReconciliationCounts(reconciled=None, adjusted=None, unchecked=None, status="NotYetCollected")
    found = [one.reconciliation for one in positions]
    return ReconciliationCounts(
        reconciled=found.count("Reconciled"),
        adjusted=found.count("Adjusted"),
        unchecked=found.count("Unchecked"),
        status="Counted",
    )
