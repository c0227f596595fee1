"""Routes for the data of embedded reports: heads, charts, rows, files, and the list of reports.

Tenant, token or wallet, and moment or range come only from the embed token.
"""

from typing import Annotated

from litestar import Controller
from litestar.params import QueryParameter
from litestar.response import Stream
from msgspec import UNSET

from api.activities.parameters import DirectionFilter, WalletActivityTypeFilter
from api.activities.schemas import Direction, WalletActivity, WalletActivityType
from api.engine.serving import Snapshot
from api.http.calls import Fetched
from api.http.paging import Key
from api.http.parameters import From, Injected, TimeRange, To, read_range
from api.http.routes import get, post
from api.reports import cap_table, wallet_activity
from api.reports.activities import ActivityFilters
from api.reports.calls import EmbedCall
from api.reports.files import stream_report
from api.reports.holders import HolderFilters
from api.reports.index import read_index
from api.reports.operations import answering, saving
from api.reports.parameters import PinnedVersion, RowLimit, RowOffset, RowSearch
from api.reports.schemas.report_data import (
    ActivityReportSort,
    CapTableForm,
    CapTableReport,
    FeeRows,
    HolderReportSort,
    IndexTokenSort,
    IndexWalletSort,
    ReportActivities,
    ReportHolding,
    ReportHoldings,
    ReportIndex,
    WalletActivityForm,
    WalletActivityReport,
)
from api.reports.wallet_activity import WalletView
from api.schema import Reconciliation
from api.subjects.finding import parse_address
from api.subjects.moments import to_as_of, to_coverage, to_moment_coverage
from api.subjects.names import Names
from api.subjects.parameters import TrackingStatusFilter
from api.tokens.cap_table import holder_labels
from control.inputs import ASSET, FILTER
from control.networks.definitions import NATIVE

ActivitySearch = Annotated[
    str | None,
    QueryParameter(
        description="Part of a transaction's hash, of a counterparty's address, or of your name for it.",
        schema_extra=FILTER,
    ),
]
HolderSort = Annotated[HolderReportSort, QueryParameter(description="Sort order; a leading `-` means descending.")]
ActivitySort = Annotated[ActivityReportSort, QueryParameter(description="Sort order; a leading `-` means descending.")]
ReconciliationFilter = Annotated[
    Reconciliation | None, QueryParameter(description="Result of the comparison with the chain.")
]
AssetFilter = Annotated[
    str | None,
    QueryParameter(name="token", description="Asset: address of its contract, or `native`.", schema_extra=ASSET),
]
FeesFilter = Annotated[
    FeeRows,
    QueryParameter(
        description="`folded`: fees of transactions with another activity are in `fees` instead of rows. Not allowed "
        "with `type=Fee`."
    ),
]
TokenSort = Annotated[
    IndexTokenSort, QueryParameter(name="tokenSort", description="Order of the tokens; descending with a leading `-`.")
]
WalletSort = Annotated[
    IndexWalletSort,
    QueryParameter(name="walletSort", description="Order of the wallets; descending with a leading `-`."),
]
IndexSearch = Annotated[
    str | None,
    QueryParameter(description="Text to find anywhere in name, symbol, address or external id.", schema_extra=FILTER),
]


class CapTableReportController(Controller):
    """Data of the cap table report."""

    path = "/embed/data/cap-table"
    tags = ("Embedded reports",)

    @get("/summary", answering("cap-table", (404, 409, 410)))
    def read_cap_table_report(self, call: Injected[EmbedCall], data_version: PinnedVersion = None) -> CapTableReport:
        """Read the head of a cap table report.

        Supply, value, concentration, the largest holders, and the data of the charts.
        """
        with call.snapshot(data_version) as snapshot:
            found, holders = cap_table.open_holders(call, snapshot)
            return cap_table.read_report(snapshot, found, holders)

    @get("/rows", answering("cap-table", (404, 409, 410), {"sort": "-quantity", "limit": "10"}))
    def list_cap_table_rows(
        self,
        call: Injected[EmbedCall],
        sort: HolderSort = "rank",
        q: RowSearch = None,
        reconciliation: ReconciliationFilter = None,
        limit: RowLimit = 50,
        offset: RowOffset = 0,
        data_version: PinnedVersion = None,
    ) -> ReportHoldings:
        """List rows of a cap table report.

        Holders with quantity, share, value, and the change of the quantity in 30 days.
        """
        with call.snapshot(data_version) as snapshot:
            found, holders = cap_table.open_holders(call, snapshot)
            named = Names(call.store, found.subject).matching(q)
            filters = HolderFilters(sort, q, named, reconciliation)
            return ReportHoldings(
                data=holders.page(filters, limit, offset),
                total=holders.count(filters),
                limit=limit,
                offset=offset,
                data_version=snapshot.data_version(call.tenant_id),
            )

    @get("/csv", saving("cap-table", ReportHolding, (404, 409, 410)))
    def download_cap_table(
        self,
        call: Injected[EmbedCall],
        sort: HolderSort = "rank",
        q: RowSearch = None,
        reconciliation: ReconciliationFilter = None,
        data_version: PinnedVersion = None,
    ) -> Stream:
        """Download all rows of a cap table report.

        A CSV file, streamed, without a limit of rows. An apostrophe is put before text that a spreadsheet would
        compute.
        """
        return _cap_table_file(call, sort, q, reconciliation, data_version)

    @post("/csv", saving("cap-table", ReportHolding, (404, 409, 410)))
    def save_cap_table(
        self,
        call: Injected[EmbedCall],
        payload: Injected[CapTableForm],
    ) -> Stream:
        """Download all rows of a cap table report from a page.

        Takes a form, so that the browser saves the file while it arrives, and no address contains the token.
        """
        return _cap_table_file(call, payload.sort, payload.q, payload.reconciliation, payload.data_version)


class WalletActivityReportController(Controller):
    """Data of the wallet activity report."""

    path = "/embed/data/wallet-activity"
    tags = ("Embedded reports",)

    @get("/summary", answering("wallet-activity", (404, 410)))
    def read_wallet_activity_report(
        self, call: Injected[EmbedCall], data_version: PinnedVersion = None
    ) -> WalletActivityReport:
        """Read the head of a wallet activity report.

        Value now and over time, flows, activities by day and kind, and balances at the end of the report's range.
        """
        with call.snapshot(data_version) as snapshot:
            return wallet_activity.read_report(snapshot, wallet_activity.open_wallet(call, snapshot))

    @get("/rows", answering("wallet-activity", (404, 410), {"sort": "-value", "limit": "10"}))
    def list_wallet_activity_rows(
        self,
        call: Injected[EmbedCall],
        sort: ActivitySort = "-date",
        q: ActivitySearch = None,
        activity_type: WalletActivityTypeFilter = None,
        token: AssetFilter = None,
        direction: DirectionFilter = None,
        fees: FeesFilter = "apart",
        start: From = None,
        end: To = None,
        limit: RowLimit = 50,
        offset: RowOffset = 0,
        data_version: PinnedVersion = None,
    ) -> ReportActivities:
        """List rows of a wallet activity report.

        Activities of the report's range or of a part of it.
        """
        with call.snapshot(data_version) as snapshot:
            wallet = wallet_activity.open_wallet(call, snapshot)
            times = read_range(start, end)
            filters = _activity_filters(call, wallet, sort, q, activity_type, token, direction, times, fees)
            page = wallet.activities.page(filters, limit, offset)
            return ReportActivities(
                data=page,
                fees=wallet.activities.fees(page) if filters.folds_fees else UNSET,
                total=wallet.activities.count(filters),
                limit=limit,
                offset=offset,
                data_version=snapshot.data_version(call.tenant_id),
            )

    @get("/csv", saving("wallet-activity", WalletActivity, (404, 410)))
    def download_wallet_activity(
        self,
        call: Injected[EmbedCall],
        sort: ActivitySort = "-date",
        q: ActivitySearch = None,
        activity_type: WalletActivityTypeFilter = None,
        token: AssetFilter = None,
        direction: DirectionFilter = None,
        start: From = None,
        end: To = None,
        data_version: PinnedVersion = None,
    ) -> Stream:
        """Download all rows of a wallet activity report.

        A CSV file, streamed, without a limit of rows. An apostrophe is put before text that a spreadsheet would
        compute.
        """
        asked = (sort, q, activity_type, token, direction, read_range(start, end))
        return _wallet_activity_file(call, data_version, *asked)

    @post("/csv", saving("wallet-activity", WalletActivity, (404, 410)))
    def save_wallet_activity(
        self,
        call: Injected[EmbedCall],
        payload: Injected[WalletActivityForm],
    ) -> Stream:
        """Download all rows of a wallet activity report from a page.

        Takes a form, so that the browser saves the file while it arrives, and no address contains the token.
        """
        return _wallet_activity_file(
            call,
            payload.data_version,
            payload.sort,
            payload.q,
            payload.type,
            payload.asset,
            payload.direction,
            read_range(payload.from_, payload.to),
        )


class ReportIndexController(Controller):
    """Data of the index page."""

    path = "/embed/data/index"
    tags = ("Embedded reports",)

    @get("/", answering("index", (404,)))
    def list_reports(
        self,
        call: Injected[EmbedCall],
        q: IndexSearch = None,
        tracking_status: TrackingStatusFilter = None,
        token_sort: TokenSort = "created",
        wallet_sort: WalletSort = "created",
        limit: RowLimit = 50,
        offset: RowOffset = 0,
    ) -> ReportIndex:
        """List the tokens and wallets that have reports.

        The tenant's tokens and wallets, by default oldest first. `limit` and `offset` apply to each of the two lists.
        """
        with call.snapshot() as snapshot:
            return read_index(call, snapshot, q, tracking_status, token_sort, wallet_sort, limit, offset)


def _cap_table_file(
    call: EmbedCall,
    sort: HolderReportSort,
    q: str | None,
    reconciliation: Reconciliation | None,
    data_version: int | None,
) -> Stream:
    with call.snapshot(data_version) as snapshot:
        found, holders = cap_table.open_holders(call, snapshot)
        filters = HolderFilters(sort, q, Names(call.store, found.subject).matching(q), reconciliation)
        view, version = holders.view, snapshot.version
        as_of = to_as_of(view, holders.state, snapshot)
        coverage = to_moment_coverage(view, holders.state, holders.status)
    labels = holder_labels(view, holders.names)

    def rows(opened: Snapshot, after: Key | None, limit: int) -> Fetched[ReportHolding]:
        return holders.on(opened).fetch(filters, labels, limit, after)

    return stream_report(
        call,
        version,
        ReportHolding,
        rows,
        found.subject.symbol or "token",
        as_of,
        coverage,
        has_all_rows=holders.summary.holders_status == "Complete",
        reads_columns=True,
    )


def _wallet_activity_file(
    call: EmbedCall,
    data_version: int | None,
    sort: ActivityReportSort,
    q: str | None,
    activity_type: WalletActivityType | None,
    token: str | None,
    direction: Direction | None,
    times: TimeRange,
) -> Stream:
    with call.snapshot(data_version) as snapshot:
        wallet = wallet_activity.open_wallet(call, snapshot)
        filters = _activity_filters(call, wallet, sort, q, activity_type, token, direction, times)
        view, version = wallet.view, snapshot.version
        as_of, coverage = to_as_of(view, wallet.state, snapshot), to_coverage(view, wallet.state, filters.times)

    def rows(opened: Snapshot, after: Key | None, limit: int) -> Fetched[WalletActivity]:
        return wallet.activities.on(opened).fetch(filters, limit, after)

    return stream_report(call, version, WalletActivity, rows, wallet.found.subject.name or "wallet", as_of, coverage)


def _activity_filters(
    call: EmbedCall,
    wallet: WalletView,
    sort: ActivityReportSort,
    q: str | None,
    activity_type: WalletActivityType | None,
    token: str | None,
    direction: Direction | None,
    times: TimeRange,
    fees: FeeRows = "apart",
) -> ActivityFilters:
    """Return the filters, with their range limited to the report's range."""
    starts = [time for time in (wallet.times.start, times.start) if time is not None]
    ends = [time for time in (wallet.times.end, times.end) if time is not None]
    return ActivityFilters(
        TimeRange(max(starts, default=None), min(ends, default=None)),
        sort,
        q,
        wallet.activities.names.matching(q),
        activity_type,
        None if token is None else _asset(call, wallet, token),
        direction,
        fees == "folded",
    )


def _asset(call: EmbedCall, wallet: WalletView, token: str) -> str:
    """Return an asset's stored address.

    Raises:
        ApiError: 422, the text is neither an address nor `native`.
    """
    if token == NATIVE:
        return NATIVE
    return parse_address(call.services.networks, wallet.view.subject, "token", token, f"; or give `{NATIVE}`")
