"""Routes of the report of changes: head, rows and file.

Tenant, token and moments come only from the embed token.
"""

from dataclasses import replace

from litestar import Controller
from litestar.response import Stream

from api.engine.serving import Snapshot
from api.http.calls import Fetched
from api.http.paging import Key
from api.http.parameters import Injected
from api.http.routes import get, post
from api.reports.calls import EmbedCall
from api.reports.cap_table_changes import open_changes, read_report
from api.reports.files import stream_report
from api.reports.operations import answering, saving
from api.reports.parameters import PinnedVersion, RowLimit, RowOffset, RowSearch
from api.reports.schemas.report_data import CapTableChangesForm, CapTableChangesReport, ReportChanges
from api.subjects.moments import to_as_of
from api.tokens.cap_table_changes import Changes, read_page
from api.tokens.parameters import HolderChangeFilter, HolderChangeSort
from api.tokens.schemas import HolderChange, HolderChangeKind, HolderChangeOrder

_ERRORS = (404, 409, 410)


class CapTableChangesReportController(Controller):
    """Data of the report of changes."""

    path = "/embed/data/cap-table-changes"
    tags = ("Embedded reports",)

    @get("/summary", answering("cap-table-changes", _ERRORS))
    def read_cap_table_changes_report(
        self, call: Injected[EmbedCall], data_version: PinnedVersion = None
    ) -> CapTableChangesReport:
        """Read the head of a report of cap-table changes.

        Figures of both cap tables, and the largest differences.
        """
        with call.snapshot(data_version) as snapshot:
            return read_report(snapshot, *open_changes(call, snapshot))

    @get("/rows", answering("cap-table-changes", _ERRORS, {"change": "New", "limit": "10"}))
    def list_cap_table_change_rows(
        self,
        call: Injected[EmbedCall],
        sort: HolderChangeSort = "-difference",
        q: RowSearch = None,
        change: HolderChangeFilter = None,
        limit: RowLimit = 50,
        offset: RowOffset = 0,
        data_version: PinnedVersion = None,
    ) -> ReportChanges:
        """List rows of a report of cap-table changes.

        Holders with different quantities, with the quantities before and after.
        """
        with call.snapshot(data_version) as snapshot:
            _, changes = open_changes(call, snapshot)
            page = read_page(snapshot, _narrowed(changes, sort, q, change), None, limit, offset)
            return ReportChanges(
                data=list(page.fetched.rows),
                total=page.matching_count,
                limit=limit,
                offset=offset,
                data_version=snapshot.data_version(call.tenant_id),
            )

    @get("/csv", saving("cap-table-changes", HolderChange, _ERRORS))
    def download_cap_table_changes(
        self,
        call: Injected[EmbedCall],
        sort: HolderChangeSort = "-difference",
        q: RowSearch = None,
        change: HolderChangeFilter = None,
        data_version: PinnedVersion = None,
    ) -> Stream:
        """Download all rows of a report of cap-table changes.

        A CSV file, streamed, without a limit of rows. An apostrophe is put before text that a spreadsheet would
        compute.
        """
        return _file(call, sort, q, change, data_version)

    @post("/csv", saving("cap-table-changes", HolderChange, _ERRORS))
    def save_cap_table_changes(
        self,
        call: Injected[EmbedCall],
        payload: Injected[CapTableChangesForm],
    ) -> Stream:
        """Download all rows of a report of cap-table changes from a page.

        Takes a form, so that the browser saves the file while it arrives, and no address contains the token.
        """
        return _file(call, payload.sort, payload.q, payload.change, payload.data_version)


def _narrowed(changes: Changes, sort: HolderChangeOrder, q: str | None, change: HolderChangeKind | None) -> Changes:
    # Stored addresses are in lower case.
    search = None if q is None else q.lower()
    return replace(changes, sort=sort, search=search, named=changes.names.matching(q), change=change)


def _file(
    call: EmbedCall, sort: HolderChangeOrder, q: str | None, change: HolderChangeKind | None, data_version: int | None
) -> Stream:
    with call.snapshot(data_version) as snapshot:
        found, changes = open_changes(call, snapshot)
        version, as_of = snapshot.version, to_as_of(changes.view, changes.after, snapshot)
    narrowed = _narrowed(changes, sort, q, change)

    def rows(opened: Snapshot, after: Key | None, limit: int) -> Fetched[HolderChange]:
        return read_page(opened, narrowed, after, limit).fetched

    subject = found.subject.symbol or "token"
    return stream_report(call, version, HolderChange, rows, subject, as_of, changes.coverage)
