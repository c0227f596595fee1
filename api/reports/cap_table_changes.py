"""Head of a report of the changes of a cap table."""

from api.engine.serving import Snapshot
from api.http.parameters import read_moments
from api.reports.calls import EmbedCall
from api.reports.schemas.report_data import CapTableChangesReport
from api.reports.subjects import ReportSubject, find_token, to_report_token
from api.subjects.moments import read_view, to_as_of
from api.subjects.names import Names
from api.tokens.cap_table_changes import Changes, read_page, resolve_both

_LARGEST = 10


def open_changes(call: EmbedCall, snapshot: Snapshot) -> tuple[ReportSubject, Changes]:
    """Return the report's token, and the changes of its holders between the report's moments.

    Raises:
        NotFound: the token was removed.
        ApiError: 409, a moment is not covered; 422, the moments are in the wrong order.
    """
    found = find_token(call)
    view = read_view(snapshot, found.subject, found.windows)
    first, last = read_moments(call.params["from"], call.params.get("to"), call.begun)
    return found, Changes(view, Names(call.store, found.subject), *resolve_both(snapshot, view, first, last))


def read_report(snapshot: Snapshot, found: ReportSubject, changes: Changes) -> CapTableChangesReport:
    """Return the head of a report of changes."""
    page = read_page(snapshot, changes, None, _LARGEST)
    return CapTableChangesReport(
        token=to_report_token(found, changes.view.decimals),
        from_=to_as_of(changes.view, changes.before, snapshot),
        from_status=changes.statuses[0],
        to=to_as_of(changes.view, changes.after, snapshot),
        to_status=changes.statuses[1],
        is_current=changes.after is not None and changes.after.is_current,
        coverage=changes.coverage,
        totals=page.totals,
        largest=list(page.fetched.rows),
        data_version=snapshot.data_version(found.subject.tenant_id),
    )
